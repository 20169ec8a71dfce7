import { z } from "zod";
import { MAX_KEYS, type Position, positionFull } from "../cursor/position.ts";
import { SeenKeys } from "../cursor/seen-keys.ts";
import { parseSeen, type SavedSeen, savedSeenSchema, showSeen, writeSeen } from "../cursor/seen-state.ts";
import type { Page, PageItem } from "../fetch/page.ts";
import { type Discriminator, type DiscriminatorContext, NO_START_VALUE } from "./discriminator.ts";

const settings = z.strictObject({
  by: z
    .literal("etag")
    .describe(
      "One document that changes: it is asked for with If-None-Match and If-Modified-Since, and new is what the version before did not hold. Without `itemsPath` each version is one item.",
    ),
});

type EtagOptions = Pick<DiscriminatorContext, "itemKey" | "order" | "startAt">;

/** One document, of which each version is compared with the one before. */
export const etag: Discriminator<typeof settings> = {
  settings,
  cursorKind: () => undefined,
  create: (_, options) => ({
    isConditional: true,
    start: () => new EtagPosition(options, { isPriming: options.startAt === "now" }),
    restore(saved) {
      const read = savedSeenSchema.safeParse(saved);
      return read.success ? new EtagPosition(options, read.data) : undefined;
    },
    parse: (value) => parseSeen(value, MUST_BE),
  }),
  show: showSeen,
  check: (_, { startValue, isPaged }) => [
    ...(startValue === undefined ? [] : [NO_START_VALUE]),
    ...(isPaged ? [{ path: "pagination", message: ONE_DOCUMENT }] : []),
  ],
};

const ONE_DOCUMENT = "etag is about one document; seenSet reads pages, and `conditional` asks as etag does";

const MUST_BE =
  'must be "none", by which all that the document holds is new, or "all", by which it is known as it is';

/** The items of the version that was read last. */
class EtagPosition implements Position {
  readonly cursor = undefined;
  readonly #options: EtagOptions;
  readonly #keys: SeenKeys<number>;
  #isPriming: boolean;

  constructor(options: EtagOptions, saved: SavedSeen) {
    this.#options = options;
    this.#keys = SeenKeys.read(saved.keys ?? [], Number);
    this.#isPriming = saved.isPriming ?? false;
  }

  get isPriming(): boolean {
    return this.#isPriming;
  }

  /** While a version is published in parts, the one before is remembered as well. */
  get room(): number {
    return 2 * MAX_KEYS - this.#keys.size;
  }

  select({ items }: Page): readonly PageItem[] {
    if (items.length > MAX_KEYS) throw positionFull();
    if (this.#isPriming) return [];
    const { order, itemKey } = this.#options;
    const fresh = new Map<string, PageItem>();
    for (const item of order === "descending" ? items.toReversed() : items) {
      const key = itemKey(item);
      if (!this.#keys.has(key) && !fresh.has(key)) fresh.set(key, item);
    }
    return [...fresh.values()];
  }

  add(items: readonly PageItem[]): void {
    for (const item of items) this.#keys.add(this.#options.itemKey(item), VERSION);
  }

  reachesKnown(): boolean {
    return true;
  }

  endPage({ items }: Page): boolean {
    this.#keys.forget(() => true);
    this.add(items);
    this.#isPriming = false;
    return false;
  }

  endWalk(): void {}

  save(): SavedSeen {
    return writeSeen(this.#keys, this.#isPriming);
  }
}

/** All keys are of one version. */
const VERSION = 0;
