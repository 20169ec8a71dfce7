import { parseJson } from "../../../event/parse-json.ts";
import { type Position, PositionError } from "../cursor/position.ts";
import type { PageItem } from "../fetch/page.ts";
import type { Order } from "./discriminator.ts";
import type { Ordering, OrderKey } from "./ordering.ts";

export interface ItemCheckOptions<K extends OrderKey> {
  readonly ordering: Ordering<K>;
  readonly order: Order;
  readonly nowMs: number;
  /** Returns whether an item without an order key was already published. */
  readonly isKnownUnordered: (item: PageItem) => boolean;
}

/**
 * Creates the check of a walk's pages against the settings. A position that trusts a wrong `order` or a wrong path would lose items.
 *
 * If the first page alone contradicts `order`, the check returns the error instead of throwing it, because a complete page may have any
 * order. It throws the error at the next page with items.
 */
export function createItemCheck<K extends OrderKey>({
  isKnownUnordered,
  nowMs,
  order,
  ordering,
}: ItemCheckOptions<K>): NonNullable<Position["check"]> {
  /** The item with the highest order key of the walk so far, or with the lowest one in descending order. */
  let edge: K | undefined;
  /** Order keys of the walk so far. */
  const seen = new Set<K>();
  let doubt: PositionError | undefined;

  const isBeyond = (orderKey: K, other: K): boolean =>
    order === "ascending" ? orderKey > other : orderKey < other;
  const contradicts = (orderKey: K, other: K): boolean =>
    order === "ascending"
      ? orderKey < ordering.subtractLookBack(other)
      : ordering.subtractLookBack(orderKey) > other;

  return ({ items }, { isFirst, warn }) => {
    if (isFirst) {
      [edge, doubt] = [undefined, undefined];
      seen.clear();
    }
    const orderKeys: K[] = [];
    const unordered: PageItem[] = [];
    for (const item of items) {
      const orderKey = ordering.read(item, nowMs);
      if (orderKey === undefined) unordered.push(item);
      else orderKeys.push(orderKey);
    }
    const unread = unordered.find((item) => isReadable(item) && !isKnownUnordered(item));
    if (unread !== undefined) {
      if (orderKeys.length === 0)
        throw new PositionError("position_missing", describeUnread(ordering, unread));
      warn("position_missing", describeSome(ordering, unread, [unordered.length, items.length]));
    }
    if (order === "unordered" || orderKeys.length === 0) return doubt;
    if (doubt !== undefined) throw doubt;
    // Items that were inserted during the walk shift known items to this page again. Neither contradicts `order`.
    const shifted = orderKeys.findLastIndex((orderKey) => seen.has(orderKey)) + 1;
    for (const orderKey of orderKeys) seen.add(orderKey);
    for (const orderKey of orderKeys.slice(shifted)) {
      if (edge !== undefined && contradicts(orderKey, edge)) {
        doubt ??= new PositionError("order", describeContradiction(ordering, order, [edge, orderKey]));
        if (!isFirst) throw doubt;
      }
      if (edge === undefined || isBeyond(orderKey, edge)) edge = orderKey;
    }
    return doubt;
  };
}

/** A line that is not JSON has no values. It is quarantined like any other invalid item. */
function isReadable({ line }: PageItem): boolean {
  if (line === undefined) return true;
  try {
    parseJson(line);
    return true;
  } catch {
    return false;
  }
}

const MAX_SHOWN_CHARS = 100;

function describeUnread<K extends OrderKey>({ expected, path }: Ordering<K>, item: PageItem): string {
  return `No item on the page has a readable position: \`discriminator.path\` (${path.text}) selects ${showValue(path, item)}, but must select ${expected}. Correct the settings of \`discriminator\``;
}

function describeSome<K extends OrderKey>(
  { expected, path }: Ordering<K>,
  item: PageItem,
  [missing, total]: readonly [number, number],
): string {
  return `${missing} of ${total} items on a page have no readable position. They are published, but do not move the cursor. \`discriminator.path\` (${path.text}) selects ${showValue(path, item)} from one of them, but must select ${expected}`;
}

function showValue(path: Ordering<OrderKey>["path"], item: PageItem): string {
  const text = item.read(path);
  return text === undefined ? "no single value" : JSON.stringify(text.slice(0, MAX_SHOWN_CHARS));
}

function describeContradiction<K extends OrderKey>(
  { show }: Ordering<K>,
  order: Order,
  [before, after]: readonly [K, K],
): string {
  const fix =
    order === "ascending"
      ? "`descending` if the newest items come first, or else to `unordered`"
      : "`ascending` if the oldest items come first, or else to `unordered`";
  return `The items contradict the setting \`order\` (${order}): ${show(after)} comes after ${show(before)}. Set \`order\` to ${fix}. Until then, no items are published`;
}
