import { z } from "zod";
import { MAX_KEYS, type Position, type PositionContext } from "../cursor/position.ts";
import { KEY_CHARS, SeenKeys, seenKeysSchema } from "../cursor/seen-keys.ts";
import type { Page, PageItem } from "../fetch/page.ts";
import type { TemplateValue } from "../request/template-values.ts";
import type { Order } from "./discriminator.ts";

/** The value by which items are put in order. */
export type OrderKey = number | bigint | string;

/** How order keys are read from items and cursors, and compared. */
export interface Ordering<K extends OrderKey> {
  readonly read: (item: PageItem, nowMs: number) => K | undefined;
  /** Of what `String` makes of an order key. */
  readonly parse: (text: string) => K | undefined;
  /** The order key from which on items may still be new when `orderKey` is the highest that was seen. */
  readonly lowered: (orderKey: K) => K;
  readonly valueOf: (orderKey: K) => TemplateValue;
  readonly keyOf: (item: PageItem, orderKey: K) => string;
  /** The key of the only item that can have this order key; undefined where there can be several. */
  readonly onlyKeyAt: (orderKey: K) => string | undefined;
}

/** Items without an order key that can be remembered; they are forgotten after a day in which no page shows them. */
const MAX_UNORDERED = 1000;
const UNORDERED_MS = 86_400_000;
/** How often the page that still shows one is worth a write. */
const UNORDERED_STEP_MS = UNORDERED_MS / 8;

const text = z.string().max(4096);

export const savedOrderedSchema = z.strictObject({
  /** Up to here all is settled, but for what comes late. */
  at: text.optional(),
  /** An item below it was never wanted, however late it comes. */
  from: text.optional(),
  /** The highest order key that was seen, where pages bring them in no order. */
  high: text.optional(),
  /** The highest order key at the end of the walk before. */
  settled: text.optional(),
  keys: seenKeysSchema.default([]),
  /** Items without an order key, under the name that stored cursors have for them. */
  strays: seenKeysSchema.default([]),
  isPriming: z.boolean().default(false),
});
export type SavedOrdered = z.input<typeof savedOrderedSchema>;

/**
 * A position in an order: everything below `at` is old, less a margin for what comes late; what is above, and not among the keys
 * of what was published, is new. Several items may have the order key `at` itself: their keys tell which of them were published, so
 * that none is lost and none comes twice.
 *
 * Where pages come in no order, `at` stays until all pages are through, and then becomes what was the highest order key one walk ago:
 * an item that was written behind the reader's back while it read other pages is found by the next walk. A walk of one page sees
 * all at one moment, and needs no such caution.
 *
 * An item without an order key (or with one in the future, which would make everything after it old) is published once and moves nothing.
 */
export class OrderedPosition<K extends OrderKey> implements Position {
  readonly #ordering: Ordering<K>;
  readonly #order: Order;
  readonly #nowMs: number;
  readonly #keys: SeenKeys<K>;
  readonly #unordered: SeenKeys<number>;
  readonly #from: K | undefined;
  #at: K | undefined;
  #high: K | undefined;
  #settled: K | undefined;
  #isPriming: boolean;

  constructor(ordering: Ordering<K>, order: Order, saved: SavedOrdered, { nowMs }: PositionContext) {
    const parse = (orderKey: string | undefined) =>
      orderKey === undefined ? undefined : ordering.parse(orderKey);
    this.#ordering = ordering;
    this.#order = order;
    this.#nowMs = nowMs;
    this.#at = parse(saved.at);
    this.#from = parse(saved.from);
    this.#high = parse(saved.high) ?? this.#at;
    this.#settled = parse(saved.settled);
    this.#keys = SeenKeys.read(saved.keys ?? [], ordering.parse);
    this.#unordered = SeenKeys.read(saved.strays ?? [], Number);
    this.#isPriming = saved.isPriming ?? false;
    this.#unordered.forget((seenMs) => seenMs < nowMs - UNORDERED_MS);
    if (this.#at !== undefined) this.#seeOnly(this.#at);
  }

  get cursor(): TemplateValue | undefined {
    const floor = this.#floor();
    return floor === undefined ? undefined : this.#ordering.valueOf(floor);
  }

  get head(): TemplateValue | undefined {
    return this.#at === undefined ? undefined : this.#ordering.valueOf(this.#at);
  }

  get isPriming(): boolean {
    return this.#isPriming;
  }

  get room(): number {
    return MAX_KEYS - this.#keys.size;
  }

  select({ items }: Page): readonly PageItem[] {
    const floor = this.#floor();
    const ordered: { readonly item: PageItem; readonly orderKey: K }[] = [];
    const unordered: PageItem[] = [];
    const onPage = new Set<string>();
    const isFirst = (key: string): boolean => !onPage.has(key) && onPage.add(key) !== undefined;
    for (const item of this.#order === "descending" ? items.toReversed() : items) {
      const orderKey = this.#ordering.read(item, this.#nowMs);
      if (orderKey === undefined) {
        if (!this.#isKnownUnordered(item) && isFirst(unorderedKey(item))) unordered.push(item);
        continue;
      }
      if (this.#isPriming) this.#raise(orderKey);
      if (floor !== undefined && orderKey < floor) continue;
      const key = this.#ordering.keyOf(item, orderKey);
      if (this.#keys.has(key) || !isFirst(key)) continue;
      // Published when its order key still was in the future.
      if (this.#isKnownUnordered(item)) this.#keys.add(key, orderKey);
      else ordered.push({ item, orderKey });
    }
    if (this.#isPriming) {
      this.#addUnordered(unordered);
      return [];
    }
    ordered.sort((a, b) => compare(a.orderKey, b.orderKey));
    return [...unordered, ...ordered.map(({ item }) => item)];
  }

  add(items: readonly PageItem[]): void {
    for (const item of items) {
      const orderKey = this.#ordering.read(item, this.#nowMs);
      if (orderKey === undefined) {
        this.#addUnordered([item]);
      } else {
        this.#keys.add(this.#ordering.keyOf(item, orderKey), orderKey);
        this.#raise(orderKey);
      }
    }
    if (this.#order !== "unordered") this.#settle(this.#high);
  }

  reachesKnown({ items }: Page): boolean {
    if (this.#isPriming) return true;
    const floor = this.#floor();
    if (floor === undefined) return false;
    const isLast = this.#ordering.onlyKeyAt(floor) !== undefined;
    return items.some((item) => {
      const orderKey = this.#ordering.read(item, this.#nowMs);
      return orderKey !== undefined && (orderKey < floor || (isLast && orderKey === floor));
    });
  }

  endPage(): boolean {
    if (this.#isPriming && this.#order === "ascending") this.#settle(this.#high);
    return false;
  }

  endWalk(pages: number): void {
    if (this.#order !== "unordered" || this.#isPriming || pages === 1) {
      this.#settle(this.#high);
      this.#settled = undefined;
    } else {
      this.#settle(this.#settled);
      this.#settled = this.#high;
    }
    this.#isPriming = false;
  }

  save(): SavedOrdered {
    const write = (orderKey: K | undefined) => (orderKey === undefined ? undefined : String(orderKey));
    const [keys, unordered] = [this.#keys.write(), this.#unordered.write()];
    const isBelow =
      this.#at === undefined || this.#from === undefined || this.#ordering.lowered(this.#at) >= this.#from;
    return {
      at: write(this.#at),
      ...(!isBelow && { from: write(this.#from) }),
      ...(this.#high !== this.#at && { high: write(this.#high) }),
      ...(this.#settled !== undefined && { settled: write(this.#settled) }),
      ...(keys.length > 0 && { keys }),
      ...(unordered.length > 0 && { strays: unordered }),
      ...(this.#isPriming && { isPriming: true }),
    };
  }

  #floor(): K | undefined {
    if (this.#at === undefined) return undefined;
    const floor = this.#ordering.lowered(this.#at);
    return this.#from !== undefined && this.#from > floor ? this.#from : floor;
  }

  #raise(orderKey: K): void {
    if (this.#high === undefined || orderKey > this.#high) this.#high = orderKey;
  }

  /** Moves up to there, never back, and forgets what is old from then on. */
  #settle(orderKey: K | undefined): void {
    if (orderKey === undefined || (this.#at !== undefined && orderKey <= this.#at)) return;
    this.#at = orderKey;
    const floor = this.#ordering.lowered(orderKey);
    this.#keys.forget((stamp) => stamp < floor);
    this.#seeOnly(orderKey);
  }

  #seeOnly(orderKey: K): void {
    const only = this.#ordering.onlyKeyAt(orderKey);
    if (only !== undefined) this.#keys.add(only, orderKey);
  }

  #isKnownUnordered(item: PageItem): boolean {
    if (this.#unordered.size === 0) return false;
    const key = unorderedKey(item);
    const seenMs = this.#unordered.stampOf(key);
    if (seenMs !== undefined && seenMs < this.#nowMs - UNORDERED_STEP_MS)
      this.#unordered.add(key, this.#nowMs);
    return seenMs !== undefined;
  }

  #addUnordered(items: readonly PageItem[]): void {
    for (const item of items) this.#unordered.add(unorderedKey(item), this.#nowMs);
    this.#unordered.forgetFirst(MAX_UNORDERED);
  }
}

const unorderedKey = (item: PageItem): string => item.contentHash().slice(0, KEY_CHARS);

const compare = <K extends OrderKey>(a: K, b: K): number => (a < b ? -1 : a > b ? 1 : 0);
