import { z } from "zod";
import { integer, pathText } from "../../../event/setting-fields.ts";
import { err, ok } from "../../../lib/result.ts";
import type { RulePath } from "../../../normalize/compile.ts";
import { keyOf } from "../cursor/seen-keys.ts";
import type { CompiledDiscriminator, Discriminator, DiscriminatorContext } from "./discriminator.ts";
import { createOrderedPosition, type Ordering, type SavedOrdered, savedOrderedSchema } from "./ordered.ts";

const settings = z.strictObject({
  by: z
    .literal("sequence")
    .describe("New is what has a higher number than the highest that was seen, which is {{cursor}}."),
  path: pathText.describe(
    "A path over an item that yields its number, or a text that sorts: no two items have the same.",
  ),
  compare: z
    .enum(["numeric", "text"])
    .default("numeric")
    .describe("How they are compared: as whole numbers of any size, or as texts by their code units."),
  lookBack: integer(0, 10_000, 0).describe(
    "For servers that hand numbers out before items can be seen: so far below the highest number, items that were not seen yet are taken as well. {{cursor}} begins there.",
  ),
});

/** Longer values are not plausible sequence numbers and would be slow to compare on every poll. */
const MAX_DIGITS = 100;
const MAX_TEXT = 512;

/** Detects new items by the highest number, or text, seen so far. */
export const sequence: Discriminator<typeof settings> = {
  settings,
  cursorKind: () => "text",
  create({ compare, lookBack, path: text }, context) {
    const path = context.paths.ofItem(text, "discriminator.path");
    if (path === undefined) return undefined;
    const margin = BigInt(lookBack);
    return compare === "numeric"
      ? compileOrdered(
          createOrdering(path, parseNumber, (number) => number - margin),
          context,
        )
      : compileOrdered(
          createOrdering(path, parseText, (text) => text),
          context,
        );
  },
  show: (saved) => ({ sequence: savedOrderedSchema.parse(saved).at ?? null }),
  check({ compare, lookBack }, { startValue, order, isPaged }, refuse) {
    const parse = compare === "numeric" ? parseNumber : parseText;
    if (startValue !== undefined && parse(startValue) === undefined)
      refuse("startAt.value", "is no whole number");
    if (compare === "text" && lookBack > 0) refuse("discriminator.lookBack", "needs numbers to count by");
    if (order === "unordered" && !isPaged && lookBack === 0) refuse("order", ORDERED_ANYWAY);
  },
};

const ORDERED_ANYWAY =
  "items of one page are put in order anyway; where the server may leave lower numbers out, set `discriminator.lookBack`";

function compileOrdered<K extends bigint | string>(
  ordering: Ordering<K>,
  { order, startAt }: Pick<DiscriminatorContext, "order" | "startAt">,
): CompiledDiscriminator {
  const startFrom = (text: string): SavedOrdered | undefined => {
    const at = ordering.parse(text);
    return at === undefined ? undefined : { at: String(at), from: String(at) };
  };
  return {
    isOrdered: true,
    start(context) {
      const isValue = typeof startAt === "object";
      const saved = isValue ? startFrom(startAt.value) : { isPriming: startAt === "now" };
      return createOrderedPosition(ordering, order, saved ?? {}, context);
    },
    restore(saved, context) {
      const read = savedOrderedSchema.safeParse(saved);
      if (!read.success) return undefined;
      // Reject a cursor from settings that compared order keys differently.
      if (read.data.at !== undefined && ordering.parse(read.data.at) === undefined) return undefined;
      return createOrderedPosition(ordering, order, read.data, context);
    },
    parse(value) {
      const read = shownSchema.safeParse(value);
      const position = read.success ? startFrom(String(read.data.sequence)) : undefined;
      return position === undefined ? err([{ path: "sequence", message: MUST_BE }]) : ok(position);
    },
  };
}

/** A string keeps numbers of any size exact. A number is allowed if JSON can represent it exactly. */
const shownSchema = z.strictObject({ sequence: z.union([z.string(), z.int()]) });

const MUST_BE = "must be a whole number (beyond 2^53 as a text), or a text where `compare` is text";

const parseNumber = (text: string): bigint | undefined =>
  text.length <= MAX_DIGITS && /^-?\d+$/.test(text) ? BigInt(text) : undefined;

const parseText = (text: string): string | undefined =>
  text !== "" && text.length <= MAX_TEXT && text.isWellFormed() ? text : undefined;

function createOrdering<K extends bigint | string>(
  path: RulePath,
  parse: Ordering<K>["parse"],
  subtractLookBack: Ordering<K>["subtractLookBack"],
): Ordering<K> {
  const uniqueKeyAt = (orderKey: K): string => keyOf([String(orderKey)]);
  return {
    read(item) {
      const text = item.read(path);
      return text === undefined ? undefined : parse(text);
    },
    parse,
    subtractLookBack,
    valueOf: (orderKey) => ({ kind: "text", text: String(orderKey) }),
    keyOf: (_, orderKey) => uniqueKeyAt(orderKey),
    uniqueKeyAt,
  };
}
