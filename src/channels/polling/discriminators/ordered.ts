import { z } from "zod";
import type { Page, PageItem } from "../page.ts";
import { MAX_KEYS, type Position, type PositionContext } from "../position.ts";
import { KEY_CHARS, SeenKeys, seenKeysSchema } from "../seen-keys.ts";
import type { TemplateValue } from "../template-values.ts";

/** What items are put in order by. */
export type Place = number | bigint | string;

/** How places are read from items and cursors, and compared. */
export interface Scale<P extends Place> {
  readonly read: (item: PageItem, nowMs: number) => P | undefined;
  /** Of what `String` makes of a place. */
  readonly parse: (text: string) => P | undefined;
  /** The place from which on items may still be new when `place` is the highest that was seen. */
  readonly lowered: (place: P) => P;
  readonly valueOf: (place: P) => TemplateValue;
  readonly keyOf: (item: PageItem, place: P) => string;
  /** The key of the only item that can have this place; undefined where there can be several. */
  readonly onlyKeyAt: (place: P) => string | undefined;
}

export type Order = "ascending" | "descending" | "unordered";

/** Items without a place that can be remembered; they are forgotten after a day in which no page shows them. */
const MAX_STRAYS = 1000;
const STRAY_MS = 86_400_000;
/** How often the page that still shows one is worth a write. */
const STRAY_STEP_MS = STRAY_MS / 8;

const text = z.string().max(4096);

export const savedOrderedSchema = z.strictObject({
  /** Up to here all is settled, but for what comes late. */
  at: text.optional(),
  /** What is below was never wanted, however late it comes. */
  from: text.optional(),
  /** The highest place that was seen, where pages bring them in no order. */
  high: text.optional(),
  /** The highest place at the end of the walk before. */
  settled: text.optional(),
  keys: seenKeysSchema.default([]),
  strays: seenKeysSchema.default([]),
  isPriming: z.boolean().default(false),
});
export type SavedOrdered = z.input<typeof savedOrderedSchema>;

/**
 * A position in an order: everything below `at` is old, less a margin for what comes late; what is above, and not among the keys
 * of what was published, is new. Several items may have the place `at` itself: their keys tell which of them were published, so
 * that none is lost and none comes twice.
 *
 * Where pages come in no order, `at` stays until all pages are through, and then becomes what was the highest place one walk ago:
 * an item that was written behind the reader's back while it read other pages is found by the next walk. A walk of one page sees
 * all at one moment, and needs no such caution.
 *
 * An item without a place (or with one in the future, which would make everything after it old) is published once and moves nothing.
 */
export class OrderedPosition<P extends Place> implements Position {
  readonly #scale: Scale<P>;
  readonly #order: Order;
  readonly #nowMs: number;
  readonly #keys: SeenKeys<P>;
  readonly #strays: SeenKeys<number>;
  readonly #from: P | undefined;
  #at: P | undefined;
  #high: P | undefined;
  #settled: P | undefined;
  #isPriming: boolean;

  constructor(scale: Scale<P>, order: Order, saved: SavedOrdered, { nowMs }: PositionContext) {
    const parse = (place: string | undefined) => (place === undefined ? undefined : scale.parse(place));
    this.#scale = scale;
    this.#order = order;
    this.#nowMs = nowMs;
    this.#at = parse(saved.at);
    this.#from = parse(saved.from);
    this.#high = parse(saved.high) ?? this.#at;
    this.#settled = parse(saved.settled);
    this.#keys = SeenKeys.read(saved.keys ?? [], scale.parse);
    this.#strays = SeenKeys.read(saved.strays ?? [], Number);
    this.#isPriming = saved.isPriming ?? false;
    this.#strays.forget((seenMs) => seenMs < nowMs - STRAY_MS);
    if (this.#at !== undefined) this.#seeOnly(this.#at);
  }

  get cursor(): TemplateValue | undefined {
    const floor = this.#floor();
    return floor === undefined ? undefined : this.#scale.valueOf(floor);
  }

  get head(): TemplateValue | undefined {
    return this.#at === undefined ? undefined : this.#scale.valueOf(this.#at);
  }

  get isPriming(): boolean {
    return this.#isPriming;
  }

  get room(): number {
    return MAX_KEYS - this.#keys.size;
  }

  select({ items }: Page): readonly PageItem[] {
    const floor = this.#floor();
    const placed: { readonly item: PageItem; readonly place: P }[] = [];
    const strays: PageItem[] = [];
    const onPage = new Set<string>();
    const isFirst = (key: string): boolean => !onPage.has(key) && onPage.add(key) !== undefined;
    for (const item of this.#order === "descending" ? items.toReversed() : items) {
      const place = this.#scale.read(item, this.#nowMs);
      if (place === undefined) {
        if (!this.#isKnownStray(item) && isFirst(strayKey(item))) strays.push(item);
        continue;
      }
      if (this.#isPriming) this.#raise(place);
      if (floor !== undefined && place < floor) continue;
      const key = this.#scale.keyOf(item, place);
      if (this.#keys.has(key) || !isFirst(key)) continue;
      // Published when its place still was in the future.
      if (this.#isKnownStray(item)) this.#keys.add(key, place);
      else placed.push({ item, place });
    }
    if (this.#isPriming) {
      this.#addStrays(strays);
      return [];
    }
    placed.sort((a, b) => compare(a.place, b.place));
    return [...strays, ...placed.map(({ item }) => item)];
  }

  add(items: readonly PageItem[]): void {
    for (const item of items) {
      const place = this.#scale.read(item, this.#nowMs);
      if (place === undefined) {
        this.#addStrays([item]);
      } else {
        this.#keys.add(this.#scale.keyOf(item, place), place);
        this.#raise(place);
      }
    }
    if (this.#order !== "unordered") this.#settle(this.#high);
  }

  reachesKnown({ items }: Page): boolean {
    if (this.#isPriming) return true;
    const floor = this.#floor();
    if (floor === undefined) return false;
    const isLast = this.#scale.onlyKeyAt(floor) !== undefined;
    return items.some((item) => {
      const place = this.#scale.read(item, this.#nowMs);
      return place !== undefined && (place < floor || (isLast && place === floor));
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
    const write = (place: P | undefined) => (place === undefined ? undefined : String(place));
    const [keys, strays] = [this.#keys.write(), this.#strays.write()];
    const isBelow =
      this.#at === undefined || this.#from === undefined || this.#scale.lowered(this.#at) >= this.#from;
    return {
      at: write(this.#at),
      ...(!isBelow && { from: write(this.#from) }),
      ...(this.#high !== this.#at && { high: write(this.#high) }),
      ...(this.#settled !== undefined && { settled: write(this.#settled) }),
      ...(keys.length > 0 && { keys }),
      ...(strays.length > 0 && { strays }),
      ...(this.#isPriming && { isPriming: true }),
    };
  }

  #floor(): P | undefined {
    if (this.#at === undefined) return undefined;
    const floor = this.#scale.lowered(this.#at);
    return this.#from !== undefined && this.#from > floor ? this.#from : floor;
  }

  #raise(place: P): void {
    if (this.#high === undefined || place > this.#high) this.#high = place;
  }

  /** Moves up to there, never back, and forgets what is old from then on. */
  #settle(place: P | undefined): void {
    if (place === undefined || (this.#at !== undefined && place <= this.#at)) return;
    this.#at = place;
    const floor = this.#scale.lowered(place);
    this.#keys.forget((stamp) => stamp < floor);
    this.#seeOnly(place);
  }

  #seeOnly(place: P): void {
    const only = this.#scale.onlyKeyAt(place);
    if (only !== undefined) this.#keys.add(only, place);
  }

  #isKnownStray(item: PageItem): boolean {
    if (this.#strays.size === 0) return false;
    const key = strayKey(item);
    const seenMs = this.#strays.stampOf(key);
    if (seenMs !== undefined && seenMs < this.#nowMs - STRAY_STEP_MS) this.#strays.add(key, this.#nowMs);
    return seenMs !== undefined;
  }

  #addStrays(items: readonly PageItem[]): void {
    for (const item of items) this.#strays.add(strayKey(item), this.#nowMs);
    this.#strays.forgetFirst(MAX_STRAYS);
  }
}

const strayKey = (item: PageItem): string => item.contentHash().slice(0, KEY_CHARS);

const compare = <P extends Place>(a: P, b: P): number => (a < b ? -1 : a > b ? 1 : 0);
