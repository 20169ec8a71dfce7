import type { IngestResult } from "../../../event/ingest.ts";
import { isListed } from "../../../event/outcome.ts";
import { err, ok, type Result } from "../../../lib/result.ts";
import { failed } from "../../pull/source-end.ts";
import type { FetchedDelivery, ReconcileFindings, ReconcileRun, SourceEnd } from "../../source.ts";
import type { Plan } from "../config/plan.ts";
import type { ReconcilePlan } from "../config/reconcile.ts";
import type { FetchedPage } from "../fetch/fetch-page.ts";
import { getItemText, type PageItem } from "../fetch/page.ts";
import { redactValues } from "../fetch/secrets.ts";

/**
 * State of the settings of both channels that decide the ids of items. `settings` is their hash.
 *
 * The first poll with new settings only compares. `isProven` is set when an item has the id of a received event. Until then, every item is
 * compared before it is published, because wrong settings would publish each event a second time under another id.
 */
export interface ReconcileState {
  readonly settings: string;
  readonly isProven: boolean;
}

interface Step {
  readonly items: readonly PageItem[];
  readonly deliveries: readonly FetchedDelivery[];
}

/** Result of the items of one step. `unsure` means that the whole list must be compared before anything else is published. */
export type Reconciled = "published" | "compared" | "unsure";

export type Reconciler = ReturnType<typeof createReconciler>;

/** Publishes items that a webhook channel missed. */
export function createReconciler(
  { discriminator }: Pick<Plan, "discriminator">,
  { build, match, settleMs, settings: ownSettings }: ReconcilePlan,
  run: ReconcileRun,
  options: {
    readonly state: ReconcileState | undefined;
    /** Whether the poll publishes no events. Such a poll does not compare first. */
    readonly isDryRun: boolean;
    readonly clock: () => number;
    readonly nowMs: number;
    readonly signal: AbortSignal;
  },
) {
  const { clock, isDryRun, nowMs, signal } = options;
  const settings = `${ownSettings}.${run.idRules}`;
  const before = options.state?.settings === settings ? options.state : undefined;
  /** Whether this poll only compares. */
  const isTrial = before === undefined && !isDryRun;
  let isProven = isDryRun || before?.isProven === true;
  let firstReceivedMs: number | undefined;
  let seen = 0;
  let compared = 0;
  const found = { items: 0, known: 0, recovered: 0, listed: 0, failed: 0 };
  let oldestMs: number | undefined;
  let newestMs: number | undefined;

  const timeOf = (item: PageItem): number | undefined => discriminator.timeOf?.(item, nowMs);

  function buildDelivery(
    { arrivedAtMs, page, redact }: FetchedPage,
    item: PageItem,
  ): Result<FetchedDelivery, SourceEnd> {
    const built = build(getItemText(page, item));
    if (!built.ok) return err(failed("invalid_item", `An item cannot be read as JSON: ${built.error}`));
    const { body, headers, query } = built.value;
    const timeMs = timeOf(item);
    return ok({
      headers: redactValues(headers, redact),
      query: redactValues(query, redact),
      body: Buffer.from(redact(body)),
      arrivedAtMs,
      reconciled: { match, isPastWindow: timeMs === undefined || run.isForgotten(timeMs, clock()) },
    });
  }

  /** Returns whether the ids are plausible: one of them was received, or the channel received no event since the oldest item. */
  async function compare({ deliveries, items }: Step): Promise<boolean> {
    const recent = deliveries.flatMap((delivery, index) => {
      const item = items[index];
      return item === undefined || delivery.reconciled?.isPastWindow === true ? [] : [{ delivery, item }];
    });
    if (isProven || recent.length === 0) return true;
    const result = await run.compare(
      recent.map(({ delivery }) => delivery),
      { sinceMs: Math.min(...recent.map(({ item }) => timeOf(item) ?? nowMs)) },
    );
    compared += recent.length;
    isProven = result.isKnown;
    const received = result.firstReceivedMs;
    if (received !== undefined) firstReceivedMs = Math.min(firstReceivedMs ?? received, received);
    return isProven || received === undefined;
  }

  function note({ items }: Step, results: readonly IngestResult[]): void {
    for (const [index, result] of results.entries()) {
      if (result.kind !== "accepted") continue;
      const { duplicates, published, quarantined } = result.outcome;
      const listed = isListed(result.outcome);
      found.items++;
      if (published > 0) found.recovered++;
      else if (listed) found.listed++;
      else if (quarantined > 0) found.failed++;
      else if (duplicates > 0) found.known++;
      const item = items[index];
      if (item === undefined || (published === 0 && !listed)) continue;
      const timeMs = timeOf(item) ?? nowMs;
      oldestMs = Math.min(oldestMs ?? timeMs, timeMs);
      newestMs = Math.max(newestMs ?? timeMs, timeMs);
    }
  }

  return {
    /** State to store with the cursor. */
    state: (): ReconcileState | undefined => (isTrial ? before : { settings, isProven }),
    /**
     * Compares items, and publishes missed ones unless this poll only compares.
     * @param cursorAfter returns the cursor to store after the item at an index
     * @throws the errors of `ingestAll`
     */
    async publish(
      fetched: FetchedPage,
      items: readonly PageItem[],
      cursorAfter: (n: number) => string,
    ): Promise<Result<Reconciled, SourceEnd>> {
      const deliveries: FetchedDelivery[] = [];
      for (const item of items) {
        const delivery = buildDelivery(fetched, item);
        if (!delivery.ok) return delivery;
        deliveries.push(delivery.value);
      }
      const step = { items, deliveries };
      seen += items.length;
      const isPlausible = await compare(step);
      if (isTrial) return ok("compared");
      if (!isPlausible) return ok("unsure");
      note(step, await run.ingestAll(deliveries, { cursorAfter, signal }));
      return ok("published");
    },
    /** Whether this poll has seen items that it must not publish. The cursor then stays where it was. */
    hasCompared: () => isTrial && seen > 0,
    /**
     * Returns the state to store after a poll that only compared, or the end of the poll if the ids cannot be right. Returns `undefined` if it
     * is too early to tell: the items of all received events are still younger than `settleSeconds`, so they were not compared.
     */
    conclude(): Result<ReconcileState | undefined, SourceEnd> {
      if (isProven || firstReceivedMs === undefined) return ok({ settings, isProven });
      if (firstReceivedMs > nowMs - settleMs) return ok(undefined);
      return err(failed("reconcile_mismatch", describeMismatch(compared, run.channelUid)));
    },
    /** Reports the findings of the poll, even if the poll failed later. A failed poll without findings is not reported. */
    async report(isDone: boolean): Promise<void> {
      if (!isDone && found.items === 0) return;
      const missed = found.recovered + found.listed;
      const findings: ReconcileFindings = {
        ...found,
        missed:
          missed === 0 || oldestMs === undefined || newestMs === undefined
            ? undefined
            : { count: missed, oldestMs, newestMs },
      };
      await run.report(findings);
    },
  };
}

const describeMismatch = (compared: number, uid: string): string =>
  `The ids of all ${compared} items differ from those of the events that the channel ${uid} received since the oldest item, so the items were not published. Check that \`as\` supplies the value of \`idPath\``;
