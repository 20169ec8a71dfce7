import { z } from "zod";
import { integer, pathText } from "../../../lib/setting-fields.ts";
import { createItemKey, type ItemKey } from "../cursor/item-key.ts";
import { MAX_KEYS, type Position, type PositionContext, positionFull } from "../cursor/position.ts";
import { SeenKeys } from "../cursor/seen-keys.ts";
import { parseSeen, type SavedSeen, savedSeenSchema, showSeen, writeSeen } from "../cursor/seen-state.ts";
import type { Page, PageItem } from "../fetch/page.ts";
import { type Discriminator, type DiscriminatorContext, NO_START_VALUE } from "./discriminator.ts";

const settings = z.strictObject({
  by: z
    .literal("seenSet")
    .describe(
      "New is what was not seen before. All pages are read on each poll; newest first, those up to the first that ends with a known item, so that nothing is found below it: where a feed puts new items there, say unordered.",
    ),
  key: pathText
    .optional()
    .describe(
      "A path over an item that yields what it is known again by, together with `versionPath`; without it `itemId` is.",
    ),
  maxAgeSeconds: integer(3600, 34_560_000, 2_592_000).describe(
    "An item is forgotten when no page has shown it for so long; when it comes again it is new.",
  ),
  maxKeys: integer(1, MAX_KEYS, 10_000).describe(
    "So many items are remembered; those that were not shown for the longest time give way.",
  ),
});

type SeenSetSettings = z.output<typeof settings>;

/** A stamp is made anew after such a part of the age: each time costs a write. */
const STEPS = 32;

type SeenSetOptions = Pick<DiscriminatorContext, "itemKey" | "order" | "startAt">;

/** All keys that were seen are remembered. */
export const seenSet: Discriminator<typeof settings> = {
  settings,
  cursorKind: () => undefined,
  create(settings, { paths, itemId, versionPath, order, startAt }) {
    const key = paths.ofItem(settings.key, "discriminator.key") ?? itemId;
    const options: SeenSetOptions = { itemKey: createItemKey(key, versionPath), order, startAt };
    const create = (saved: SavedSeen, context: PositionContext) =>
      new SeenSetPosition(settings, options, saved, context);
    return {
      start: (context) => create({ isPriming: startAt === "now" }, context),
      restore(saved, context) {
        const read = savedSeenSchema.safeParse(saved);
        return read.success ? create(read.data, context) : undefined;
      },
      parse: (value) => parseSeen(value, MUST_BE),
    };
  },
  show: showSeen,
  check: (_, { startValue }) => (startValue === undefined ? [] : [NO_START_VALUE]),
};

const MUST_BE =
  'must be "none", by which all that the server shows is new, or "all", by which what the next poll finds is known';

class SeenSetPosition implements Position {
  readonly cursor = undefined;
  readonly #itemKey: ItemKey;
  readonly #isNewestFirst: boolean;
  readonly #maxKeys: number;
  /** Of what is seen now. */
  readonly #stamp: number;
  readonly #keys: SeenKeys<number>;
  /** Keys that were known before this poll. */
  readonly #known: ReadonlySet<string>;
  /** Keys that this poll has seen: they do not give way to more of the same poll. */
  readonly #touched = new Set<string>();
  #isPriming: boolean;

  constructor(
    { maxAgeSeconds, maxKeys }: SeenSetSettings,
    { order, itemKey }: SeenSetOptions,
    saved: SavedSeen,
    { nowMs }: PositionContext,
  ) {
    const step = Math.ceil(maxAgeSeconds / STEPS);
    const nowSeconds = Math.floor(nowMs / 1000);
    this.#itemKey = itemKey;
    this.#isNewestFirst = order === "descending";
    this.#maxKeys = maxKeys;
    this.#stamp = Math.ceil(nowSeconds / step) * step;
    this.#isPriming = saved.isPriming ?? false;
    this.#keys = SeenKeys.read(saved.keys ?? [], Number);
    this.#keys.forget((seenSeconds) => seenSeconds < nowSeconds - maxAgeSeconds);
    this.#known = new Set(this.#keys.keys());
  }

  get isPriming(): boolean {
    return this.#isPriming;
  }

  get room(): number {
    return this.#maxKeys - this.#touched.size;
  }

  select({ items }: Page): readonly PageItem[] {
    const fresh = new Map<string, PageItem>();
    for (const item of this.#isNewestFirst ? items.toReversed() : items) {
      const key = this.#itemKey(item);
      if (this.#keys.has(key)) this.#touch(key);
      else if (!fresh.has(key)) fresh.set(key, item);
    }
    if (!this.#isPriming) return [...fresh.values()];
    if (fresh.size > this.room) throw positionFull();
    for (const key of fresh.keys()) this.#touch(key);
    return [];
  }

  add(items: readonly PageItem[]): void {
    for (const item of items) this.#touch(this.#itemKey(item));
  }

  reachesKnown({ items }: Page): boolean {
    const last = items.at(-1);
    return last !== undefined && !this.#isPriming && this.#known.has(this.#itemKey(last));
  }

  unchanged(): void {
    for (const key of this.#known) this.#touch(key);
  }

  endPage(): boolean {
    return false;
  }

  endWalk(): void {
    this.#isPriming = false;
  }

  save(): SavedSeen {
    return writeSeen(this.#keys, this.#isPriming);
  }

  #touch(key: string): void {
    this.#touched.add(key);
    this.#keys.add(key, this.#stamp);
    this.#keys.forgetFirst(this.#maxKeys, this.#touched);
  }
}
