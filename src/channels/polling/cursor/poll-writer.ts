import { failed } from "../../pull/source-end.ts";
import type { SourceEnd, SourceRun } from "../../source.ts";
import type { Plan } from "../config/plan.ts";
import { createPageDelivery } from "../fetch/delivery.ts";
import type { FetchedPage } from "../fetch/fetch-page.ts";
import type { PageItem } from "../fetch/page.ts";
import type { PageReader } from "../fetch/page-reader.ts";
import type { Validators } from "../fetch/validators.ts";
import { formatPollCursor, markCompared, markContradiction, type PollCursor } from "./cursor.ts";
import { createPositionFullError } from "./position.ts";
import type { Reconciler } from "./reconciler.ts";

/** Maximum number of items per delivery. A page with more new items is split into several deliveries. */
const MAX_ITEMS = 500;

/** Result of publishing a page. `cut` means that the poll has reached `maxItemsPerPoll` while more items are available. */
export type Published =
  | { readonly kind: "through" | "cut" }
  | { readonly kind: "ended"; readonly end: SourceEnd };

export type PollWriter = ReturnType<typeof createPollWriter>;

/** Publishes the new items of a poll. Each write also stores a cursor that covers exactly the items published so far. */
export function createPollWriter(
  plan: Plan,
  run: Pick<SourceRun, "cursor" | "ingest" | "moveTo" | "signal">,
  {
    start,
    nowMs,
    reader,
    reconciler,
  }: {
    readonly start: PollCursor;
    readonly nowMs: number;
    /** Publishes the items as deliveries of another channel. `undefined` if the channel publishes its own events. */
    readonly reconciler?: Reconciler | undefined;
    readonly reader: Pick<PageReader, "findsSameItems">;
  },
) {
  const { discriminator, request, config } = plan;
  const { position } = start;
  const { signal } = run;
  let cursor = start;
  let stored = run.cursor;
  let count = 0;

  let latest = run.cursor;

  const cursorNow = (): PollCursor =>
    reconciler === undefined ? cursor : { ...cursor, reconciled: reconciler.state() };

  /**
   * Stores the cursor if it has changed. Does nothing if the poll has only compared items. Throws the same errors as `run.moveTo`.
   */
  async function save(): Promise<void> {
    const text = formatPollCursor(plan, cursorNow());
    if (text === stored || reconciler?.hasCompared() === true) return;
    await moveTo(text);
  }

  /** Publishes items and stores the cursor after each write. Returns `undefined` if the page goes on. */
  async function publishItems(
    fetched: FetchedPage,
    items: readonly PageItem[],
    cursorAfter: (n: number) => string,
  ): Promise<Published | undefined> {
    if (reconciler !== undefined) {
      const reconciled = await reconciler.publish(fetched, items, cursorAfter);
      if (!reconciled.ok) return { kind: "ended", end: reconciled.error };
      if (reconciled.value === "unsure") {
        cursor = { position, lastPollAtMs: cursor.lastPollAtMs };
        await moveTo(formatPollCursor(plan, cursor));
        return { kind: "cut" };
      }
      if (reconciled.value === "compared") cursorAfter(items.length - 1);
      else stored = latest;
      return undefined;
    }
    const { arrivedAtMs, page, redact } = fetched;
    const delivery = await createPageDelivery(page, items, { reader, arrivedAtMs, redact });
    if (!delivery.ok) return { kind: "ended", end: failed(delivery.error.code, delivery.error.message) };
    if (delivery.value === undefined) return { kind: "ended", end: failed("items_unstable", UNSTABLE) };
    const { kind } = await run.ingest(delivery.value, { cursor: cursorAfter(items.length - 1), signal });
    if (kind !== "accepted")
      return { kind: "ended", end: failed("not_accepted", `The items were not accepted: ${kind}`) };
    stored = latest;
    return undefined;
  }

  async function moveTo(text: string): Promise<void> {
    await run.moveTo(text, { signal });
    stored = text;
  }

  return {
    position,
    cursor: () => cursor,
    /** Whether this poll has already stored a new cursor. */
    hasMoved: () => stored !== run.cursor,
    /**
     * Publishes the new items of a page.
     * @param endPage called after all items are added to the position, before the write that stores the cursor with the last of them
     * @throws the errors of `ingest` and `Position`
     */
    async publish(fetched: FetchedPage, endPage: () => void): Promise<Published> {
      const { page } = fetched;
      const fresh = position.select(page);
      for (let done = 0; ; ) {
        const allowed = config.maxItemsPerPoll - count;
        if (allowed <= 0 && done < fresh.length) return { kind: "cut" };
        const items = fresh.slice(done, done + Math.min(MAX_ITEMS, allowed));
        done += items.length;
        const isLast = done === fresh.length;
        let added = 0;
        /** Returns the cursor after the item at index `n`. Called in the order of the items. */
        const cursorAfter = (n: number): string => {
          position.add(items.slice(added, n + 1));
          added = n + 1;
          if (isLast && added === items.length) endPage();
          if (position.remainingCapacity() < 0) throw createPositionFullError();
          latest = formatPollCursor(plan, cursorNow());
          return latest;
        };
        if (items.length === 0) {
          endPage();
          if (position.remainingCapacity() < 0) throw createPositionFullError();
          await save();
          return { kind: "through" };
        }
        const end = await publishItems(fetched, items, cursorAfter);
        if (end !== undefined) return end;
        count += items.length;
        if (isLast) return { kind: "through" };
      }
    },
    /**
     * Ends a poll that has read all pages. Stores the `ETag` and `Last-Modified` of the first page for the next poll's conditional request.
     */
    finish(pages: number, validators: Validators | undefined): void {
      const isConditional = config.conditional || discriminator.isConditional === true;
      // If the first page has not changed, the next poll reads no other page. That is correct only if every new item changes the first
      // page, as in descending order.
      const coversAllPages = pages === 1 || config.order === "descending";
      position.endWalk(pages);
      cursor = {
        position,
        // After a 304, a later poll would not see the items again that were too young for this one.
        validators: isConditional && coversAllPages && !position.hasUnsettled?.() ? validators : undefined,
        lastPollAtMs: request.names.has("lastPollAt") ? nowMs - (plan.reconcile?.settleMs ?? 0) : undefined,
      };
    },
    save,
    /**
     * Ends a poll that has only compared items: stores that the next poll may publish them, or returns why it must not. If it is too early to
     * tell, the next poll compares again. Returns `undefined` for any other poll.
     */
    async endComparison(): Promise<SourceEnd | undefined> {
      if (reconciler?.hasCompared() !== true) return undefined;
      const concluded = reconciler.conclude();
      if (!concluded.ok) return concluded.error;
      if (concluded.value === undefined) return { kind: "done" };
      await moveTo(markCompared(plan, stored, concluded.value));
      return { kind: "done", notBeforeMs: nowMs };
    },
    /** Stores that the items contradict the settings. The cursor stays where it was before the walk. */
    async refuse(message: string): Promise<void> {
      position.revert?.();
      const before = stored === undefined ? undefined : formatPollCursor(plan, cursor);
      await run.moveTo(markContradiction(plan, before, message), { signal });
    },
  };
}

const UNSTABLE =
  "`itemsPath` selects different items after known items were replaced by null. It must not depend on the positions of items or on other items";
