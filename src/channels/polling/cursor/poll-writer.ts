import { failed } from "../../pull/source-end.ts";
import type { SourceEnd, SourceRun } from "../../source.ts";
import type { Plan } from "../config/plan.ts";
import { createPageDelivery } from "../fetch/delivery.ts";
import type { FetchedPage } from "../fetch/fetch-page.ts";
import type { PageReader } from "../fetch/page-reader.ts";
import type { Validators } from "../fetch/validators.ts";
import { formatPollCursor, markContradiction, type PollCursor } from "./cursor.ts";
import { createPositionFullError } from "./position.ts";

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
  }: {
    readonly start: PollCursor;
    readonly nowMs: number;
    readonly reader: Pick<PageReader, "findsSameItems">;
  },
) {
  const { discriminator, request, config } = plan;
  const { position } = start;
  const { signal } = run;
  let cursor = start;
  let stored = run.cursor;
  let count = 0;

  /** Stores the cursor if it has changed. Throws the same errors as `run.moveTo`. */
  async function save(): Promise<void> {
    const text = formatPollCursor(plan, cursor);
    if (text === stored) return;
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
      const { arrivedAtMs, page, redact } = fetched;
      const fresh = position.select(page);
      for (let done = 0; ; ) {
        const allowed = config.maxItemsPerPoll - count;
        if (allowed <= 0 && done < fresh.length) return { kind: "cut" };
        const items = fresh.slice(done, done + Math.min(MAX_ITEMS, allowed));
        done += items.length;
        position.add(items);
        if (done === fresh.length) endPage();
        if (position.remainingCapacity() < 0) throw createPositionFullError();
        if (items.length === 0) {
          await save();
          return { kind: "through" };
        }
        const delivery = await createPageDelivery(page, items, { reader, arrivedAtMs, redact });
        if (!delivery.ok) return { kind: "ended", end: failed(delivery.error.code, delivery.error.message) };
        if (delivery.value === undefined) return { kind: "ended", end: failed("items_unstable", UNSTABLE) };
        const text = formatPollCursor(plan, cursor);
        const { kind } = await run.ingest(delivery.value, { cursor: text, signal });
        if (kind !== "accepted")
          return { kind: "ended", end: failed("not_accepted", `The items were not accepted: ${kind}`) };
        stored = text;
        count += items.length;
        if (done === fresh.length) return { kind: "through" };
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
        validators: isConditional && coversAllPages ? validators : undefined,
        lastPollAtMs: request.names.has("lastPollAt") ? nowMs : undefined,
      };
    },
    save,
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
