import { z } from "zod";
import { integer, pathText } from "../../../event/config-fields.ts";
import { keyOf } from "../cursor/seen-keys.ts";
import { compileOrdered } from "./compile-ordered.ts";
import type { Discriminator } from "./discriminator.ts";
import { savedOrderedSchema } from "./ordered.ts";
import type { Ordering } from "./ordering.ts";

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
    const { order, startAt } = context;
    const start = () => ({ isPriming: startAt === "now" });
    const options = { order, startAt, field: "sequence", mustBe: MUST_BE, start } as const;
    return compare === "numeric"
      ? compileOrdered(
          createOrdering({ path, expected: "an integer" }, parseNumber, (number) => number - margin),
          options,
        )
      : compileOrdered(
          createOrdering(
            { path, expected: `a text of 1 to ${MAX_TEXT} characters` },
            parseText,
            (text) => text,
          ),
          options,
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

const MUST_BE = "must be an integer (a string beyond 2^53), or a text when `compare` is text";

const parseNumber = (text: string): bigint | undefined =>
  text.length <= MAX_DIGITS && /^-?\d+$/.test(text) ? BigInt(text) : undefined;

const parseText = (text: string): string | undefined =>
  text !== "" && text.length <= MAX_TEXT && text.isWellFormed() ? text : undefined;

function createOrdering<K extends bigint | string>(
  { expected, path }: Pick<Ordering<K>, "expected" | "path">,
  parse: Ordering<K>["parse"],
  subtractLookBack: Ordering<K>["subtractLookBack"],
): Ordering<K> {
  const uniqueKeyAt = (orderKey: K): string => keyOf([String(orderKey)]);
  return {
    path,
    expected,
    show: (orderKey) => JSON.stringify(String(orderKey)),
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
