import { z } from "zod";
import { MAX_KEYS, type Position, type PositionContext } from "../cursor/position.ts";
import { KEY_CHARS, SeenKeys, seenKeysSchema } from "../cursor/seen-keys.ts";
import type { PageItem } from "../fetch/page.ts";
import { pageRequestSchema } from "../pagination/page-request.ts";
import type { Order } from "./discriminator.ts";
import { createItemCheck } from "./item-check.ts";
import type { Ordering, OrderKey } from "./ordering.ts";

/** Maximum number of remembered items without an order key. An item is forgotten when no page has contained it for a day. */
const MAX_UNORDERED = 1000;
const UNORDERED_MS = 86_400_000;
/** Minimum age of an item's stamp before the stamp is renewed. Each renewal costs a write. */
const UNORDERED_STEP_MS = UNORDERED_MS / 8;

const text = z.string().max(4096);

export const savedOrderedSchema = z.strictObject({
  /** Order key up to which all items were published, except items that arrive late. */
  at: text.optional(),
  /** Items below this order key are never published, even if they arrive late. */
  from: text.optional(),
  /** Highest order key seen so far. Stored only if items within pages are unordered. */
  high: text.optional(),
  /** Highest order key that was known when the previous poll had read all pages. */
  settled: text.optional(),
  /** Value of `at` before a walk that has not ended. If a later page contradicts `order`, `at` is set back to it. */
  before: text.nullable().optional(),
  keys: seenKeysSchema.default([]),
  /** Keys of items without an order key. The field cannot be renamed, because it is part of stored cursors. */
  strays: seenKeysSchema.default([]),
  isPriming: z.boolean().default(false),
  /**
   * A walk in descending order that limits have interrupted. `next` is the page at which it continues, and `last` the key of the last item
   * before that page. `edge` is the key of an item after which all items are known.
   */
  walk: z
    .strictObject({
      next: pageRequestSchema.optional(),
      last: z.string().optional(),
      edge: z.string().optional(),
    })
    .optional(),
  /**
   * Set while no item later than the start of the channel was published. `local`: the start is a time of Inlet's clock. `server`: it is a
   * time of the server's clock.
   */
  start: z.enum(["local", "server"]).optional(),
});
export type SavedOrdered = z.input<typeof savedOrderedSchema>;

/**
 * Creates a position for items that have an order key. Items more than the look-back below `at` are old. Other items are new unless their
 * keys were published. The keys are needed because several items may share the order key `at`.
 *
 * If pages are unordered, `at` does not move until all pages are read. It then moves only to the highest order key that the previous poll
 * had seen. So an item that the server adds to a page that was already read is still found by the next poll. A poll of a single page sees
 * everything at once and moves `at` directly.
 *
 * An item without an order key is published once and does not move `at`. An item whose order key is in the future is treated in the same
 * way, because moving `at` there would make all later items old.
 */
export function createOrderedPosition<K extends OrderKey>(
  ordering: Ordering<K>,
  order: Order,
  saved: SavedOrdered,
  { isLate, nowMs, startedAtMs }: PositionContext,
): Position {
  const parse = (orderKey: string | undefined) =>
    orderKey === undefined ? undefined : ordering.parse(orderKey);
  let from = parse(saved.from);
  const keys = SeenKeys.read(saved.keys ?? [], ordering.parse);
  const unorderedKeys = SeenKeys.read(saved.strays ?? [], Number);
  let at = parse(saved.at);
  let high = parse(saved.high) ?? at;
  let settled = parse(saved.settled);
  let before = saved.before === undefined ? at : parse(saved.before ?? undefined);
  let isPriming = saved.isPriming ?? false;
  let start = saved.start;
  let walk = saved.walk;
  let [showsOld, showsOther] = [false, false];
  const settledUntil = ordering.settledUntil?.(nowMs);
  let hasUnsettled = false;
  unorderedKeys.forget((seenMs) => seenMs < nowMs - UNORDERED_MS);
  if (at !== undefined) addUniqueKey(at);

  function computeFloor(): K | undefined {
    if (at === undefined) return undefined;
    const floor = ordering.subtractLookBack(at);
    return from !== undefined && from > floor ? from : floor;
  }

  function raiseHigh(orderKey: K): void {
    if (high === undefined || orderKey > high) high = orderKey;
  }

  /** Moves `at` forward but never back, and forgets the keys that `at` makes unnecessary. */
  function settleAt(orderKey: K | undefined): void {
    if (orderKey === undefined || (at !== undefined && orderKey <= at)) return;
    at = orderKey;
    start = undefined;
    forgetBelow(ordering.subtractLookBack(orderKey));
    addUniqueKey(orderKey);
  }

  const forgetBelow = (floor: K): void => keys.forget((stamp) => stamp < floor);

  function addUniqueKey(orderKey: K): void {
    const only = ordering.uniqueKeyAt(orderKey);
    if (only !== undefined) keys.add(only, orderKey);
  }

  function keyAt(item: PageItem): string | undefined {
    const orderKey = ordering.read(item, nowMs);
    return orderKey === undefined ? undefined : ordering.keyOf(item, orderKey);
  }

  function isKnownUnordered(item: PageItem): boolean {
    if (unorderedKeys.size === 0) return false;
    const key = unorderedKey(item);
    const seenMs = unorderedKeys.stampOf(key);
    if (seenMs !== undefined && seenMs < nowMs - UNORDERED_STEP_MS) unorderedKeys.add(key, nowMs);
    return seenMs !== undefined;
  }

  function addUnordered(items: readonly PageItem[]): void {
    for (const item of items) unorderedKeys.add(unorderedKey(item), nowMs);
    unorderedKeys.forgetFirst(MAX_UNORDERED);
  }

  function startFrom(orderKey: K | undefined): void {
    at = orderKey;
    from = orderKey;
    high = orderKey;
    before = orderKey;
  }

  /** Corrects a start at the current time, because the server's clock may differ and its times may be rounded down. */
  const adjustStart: Position["adjustStart"] = (page, { arrivedAtMs, warn }) => {
    const { startClock } = ordering;
    if (start === undefined || at === undefined || startClock === undefined) return;
    if (start === "local") {
      const translated = startClock.toServerTime(at, page, arrivedAtMs);
      if (translated === undefined && !isLate) {
        isPriming = true;
        start = undefined;
        return startFrom(undefined);
      }
      if (translated === undefined) warn("start_gap", NO_SERVER_TIME);
      start = "server";
      startFrom(translated ?? at);
    }
    startFrom(startClock.roundDown(at, page.items));
  };

  const templateValue = (orderKey: K | undefined) =>
    orderKey === undefined ? undefined : ordering.valueOf(orderKey);

  return {
    adjustStart,
    check: createItemCheck({ ordering, order, nowMs, isKnownUnordered }),
    cursor() {
      const floor = computeFloor();
      const isStart = start !== undefined && floor !== undefined;
      return templateValue(isStart ? (ordering.startClock?.toRequest(floor) ?? floor) : floor);
    },
    head: () => templateValue(at),
    resumeAt: () => walk?.next,
    interruptWalk(next, { items }) {
      const last = items.flatMap((item) => keyAt(item) ?? []).at(-1) ?? walk?.last;
      walk = { ...walk, next, last };
    },
    resumeWalk(hasNew) {
      walk = hasNew ? undefined : { edge: walk?.last };
    },
    expire(target) {
      const wasResumed = target === "page" && walk?.next !== undefined;
      walk = undefined;
      return wasResumed;
    },
    isPriming: () => isPriming,
    remainingCapacity: () => MAX_KEYS - keys.size,
    select({ items }) {
      const floor = computeFloor();
      const ordered: { readonly item: PageItem; readonly orderKey: K }[] = [];
      const unordered: PageItem[] = [];
      const onPage = new Set<string>();
      const isFirst = (key: string): boolean => !onPage.has(key) && onPage.add(key) !== undefined;
      for (const item of order === "descending" ? items.toReversed() : items) {
        const orderKey = ordering.read(item, nowMs);
        const isOld = orderKey !== undefined && floor !== undefined && orderKey < floor;
        if (isOld) showsOld = true;
        else showsOther = true;
        if (orderKey !== undefined && settledUntil !== undefined && orderKey > settledUntil) {
          hasUnsettled = true;
          continue;
        }
        if (orderKey === undefined) {
          if (!isKnownUnordered(item) && isFirst(unorderedKey(item))) unordered.push(item);
          continue;
        }
        if (isPriming) {
          raiseHigh(orderKey);
          keys.add(ordering.keyOf(item, orderKey), orderKey);
        }
        if (isOld) continue;
        const key = ordering.keyOf(item, orderKey);
        if (keys.has(key) || !isFirst(key)) continue;
        // At an earlier poll, this item's order key was in the future. The item was published then and remembered without its order key.
        if (isKnownUnordered(item)) keys.add(key, orderKey);
        else ordered.push({ item, orderKey });
      }
      if (isPriming) {
        addUnordered(unordered);
        if (high !== undefined) forgetBelow(ordering.subtractLookBack(high));
        return [];
      }
      ordered.sort((a, b) => compare(a.orderKey, b.orderKey));
      return [...unordered, ...ordered.map(({ item }) => item)];
    },
    add(items) {
      for (const item of items) {
        const orderKey = ordering.read(item, nowMs);
        if (orderKey === undefined) {
          addUnordered([item]);
        } else {
          keys.add(ordering.keyOf(item, orderKey), orderKey);
          raiseHigh(orderKey);
        }
      }
      if (order !== "unordered") settleAt(high);
    },
    reachesKnown({ items }) {
      if (isPriming) return true;
      const floor = computeFloor();
      if (floor === undefined) return false;
      const isLast = ordering.uniqueKeyAt(floor) !== undefined;
      const edge = walk?.edge;
      return items.some((item) => {
        const orderKey = ordering.read(item, nowMs);
        if (orderKey === undefined) return false;
        return (
          orderKey < floor || (isLast && orderKey === floor) || (edge !== undefined && keyAt(item) === edge)
        );
      });
    },
    // Until the first item after the start, a quiet server returns only older items.
    isBehind: () => start === undefined && showsOld && !showsOther,
    hasUnsettled: () => hasUnsettled,
    endPage() {
      if (isPriming && order === "ascending") settleAt(high);
      return false;
    },
    endWalk(pages) {
      if (order !== "unordered" || isPriming || pages === 1) {
        settleAt(high);
        settled = undefined;
      } else {
        settleAt(settled);
        settled = high;
      }
      if (isPriming && at === undefined) startFrom(ordering.startClock?.at(startedAtMs));
      before = at;
      isPriming = false;
      walk = undefined;
    },
    revert() {
      walk = undefined;
      at = before;
      high = before;
    },
    save() {
      const write = (orderKey: K | undefined) => (orderKey === undefined ? undefined : String(orderKey));
      const [written, unordered] = [keys.write(), unorderedKeys.write()];
      const isBelow = at === undefined || from === undefined || ordering.subtractLookBack(at) >= from;
      const position: SavedOrdered = {
        at: write(at),
        ...(!isBelow && { from: write(from) }),
        ...(high !== at && { high: write(high) }),
        ...(settled !== undefined && { settled: write(settled) }),
        ...(before !== at && { before: write(before) ?? null }),
        ...(written.length > 0 && { keys: written }),
        ...(unordered.length > 0 && { strays: unordered }),
        ...(isPriming && { isPriming: true }),
        ...(walk !== undefined && { walk }),
        ...(start !== undefined && { start }),
      };
      return position;
    },
  };
}

const NO_SERVER_TIME =
  "The first successful poll was more than one interval after the start of the channel, and the server sends no usable `Date`. Items that were created in between may be missing";

const unorderedKey = (item: PageItem): string => item.contentHash().slice(0, KEY_CHARS);

const compare = <K extends OrderKey>(a: K, b: K): number => (a < b ? -1 : a > b ? 1 : 0);
