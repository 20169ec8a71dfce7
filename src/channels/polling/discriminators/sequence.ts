import { z } from "zod";
import { integer, pathText } from "../../../event/config-fields.ts";
import { err, ok } from "../../../lib/result.ts";
import type { RulePath } from "../../../normalize/compile.ts";
import { keyOf } from "../cursor/seen-keys.ts";
import type { CompiledDiscriminator, Discriminator, DiscriminatorContext } from "./discriminator.ts";
import { createOrderedPosition, type Ordering, type SavedOrdered, savedOrderedSchema } from "./ordered.ts";

const configSchema = z.strictObject({
  by: z
    .literal("sequence")
    .describe(
      "Items are new if their number is higher than the highest number seen so far. {{cursor}} is the highest number.",
    ),
  path: pathText.describe(
    "Path to an item's number, or to a text by which items are ordered. Each item must have a different value.",
  ),
  compare: z
    .enum(["numeric", "text"])
    .default("numeric")
    .describe("How values are compared: as integers of any size, or as text by UTF-16 code units."),
  lookBack: integer(0, 10_000, 0).describe(
    "For servers that assign numbers before items become visible. Unseen items up to this far below the highest number also count as new, and {{cursor}} is lowered by this value.",
  ),
});

/** Maximum number of digits in a sequence number. Longer numbers are implausible and slow to compare. */
const MAX_DIGITS = 100;
const MAX_TEXT = 512;

export const sequence: Discriminator<typeof configSchema> = {
  configSchema,
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
      refuse("startAt.value", "is not a valid sequence value");
    if (compare === "text" && lookBack > 0)
      refuse("discriminator.lookBack", "is only allowed when `compare` is numeric");
    if (order === "unordered" && !isPaged && lookBack === 0) refuse("order", ORDERED_ANYWAY);
  },
};

const ORDERED_ANYWAY =
  "has no effect on a single page, whose items are always sorted; if the server may leave out lower numbers, set `discriminator.lookBack`";

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
      // The settings changed how order keys are compared, so the stored position is no longer valid.
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

/** API form of the position. The number is a string, so that it can have any size. A safe integer is accepted too. */
const shownSchema = z.strictObject({ sequence: z.union([z.string(), z.int()]) });

const MUST_BE = "must be an integer (a string beyond 2^53), or a text when `compare` is text";

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
