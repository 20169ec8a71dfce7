import { z } from "zod";
import { err, ok } from "../../../lib/result.ts";
import type { RulePath } from "../../../normalize/compile.ts";
import { keyOf } from "../item-key.ts";
import type { Discriminator } from "../position.ts";
import type { StartAt } from "../start-at.ts";
import { type Order, OrderedPosition, type SavedOrdered, type Scale, savedOrderedSchema } from "./ordered.ts";

export const sequenceSettings = z.strictObject({
  by: z
    .literal("sequence")
    .describe("New is what has a higher number than the highest that was seen, which is {{cursor}}."),
  path: z
    .string()
    .min(1)
    .max(1024)
    .describe(
      "A path over an item that yields its number, or a text that sorts: no two items have the same.",
    ),
  compare: z
    .enum(["numeric", "text"])
    .default("numeric")
    .describe("How they are compared: as whole numbers of any size, or as texts by their code units."),
  lookBack: z
    .int()
    .min(0)
    .max(10_000)
    .default(0)
    .describe(
      "For servers that hand numbers out before items can be seen: so far below the highest number, items that were not seen yet are taken as well. {{cursor}} begins there.",
    ),
});

export type SequenceSettings = z.output<typeof sequenceSettings>;

/** Longer ones are no sequence of anything, and would be compared on every poll. */
const MAX_DIGITS = 100;
const MAX_TEXT = 512;

export interface SequenceOptions {
  readonly path: RulePath;
  readonly order: Order;
  readonly startAt: StartAt;
}

export function createSequence(settings: SequenceSettings, options: SequenceOptions): Discriminator {
  return settings.compare === "numeric"
    ? createOn(numericScale(BigInt(settings.lookBack), options.path), options)
    : createOn(textScale(options.path), options);
}

function createOn<P extends bigint | string>(
  scale: Scale<P>,
  { order, startAt }: SequenceOptions,
): Discriminator {
  const startFrom = (text: string): SavedOrdered | undefined => {
    const at = scale.parse(text);
    return at === undefined ? undefined : { at: String(at), from: String(at) };
  };
  return {
    start(context) {
      const isValue = typeof startAt === "object";
      const saved = isValue ? startFrom(startAt.value) : { isPriming: startAt === "now" };
      return new OrderedPosition(scale, order, saved ?? {}, context);
    },
    restore(saved, context) {
      const read = savedOrderedSchema.safeParse(saved);
      if (!read.success) return undefined;
      // Of settings by which places were compared otherwise.
      if (read.data.at !== undefined && scale.parse(read.data.at) === undefined) return undefined;
      return new OrderedPosition(scale, order, read.data, context);
    },
    parse(value) {
      const read = shownSchema.safeParse(value);
      const position = read.success ? startFrom(String(read.data.sequence)) : undefined;
      return position === undefined ? err([{ path: "sequence", message: MUST_BE }]) : ok(position);
    },
  };
}

export function showSequence(saved: unknown): unknown {
  return { sequence: savedOrderedSchema.parse(saved).at ?? null };
}

/** Undefined for a text that is no place in the sequence. */
export const parseSequence = (
  text: string,
  compare: SequenceSettings["compare"],
): bigint | string | undefined => (compare === "numeric" ? parseNumber(text) : parseText(text));

/** A text, so that numbers of any size stay as they are; a number where JSON can hold it exactly. */
const shownSchema = z.strictObject({ sequence: z.union([z.string(), z.int()]) });

const MUST_BE = "must be a whole number (beyond 2^53 as a text), or a text where `compare` is text";

const parseNumber = (text: string): bigint | undefined =>
  text.length <= MAX_DIGITS && /^-?\d+$/.test(text) ? BigInt(text) : undefined;

const parseText = (text: string): string | undefined =>
  text !== "" && text.length <= MAX_TEXT && text.isWellFormed() ? text : undefined;

const numericScale = (lookBack: bigint, path: RulePath): Scale<bigint> => ({
  ...commonOf(parseNumber, path),
  lowered: (place) => place - lookBack,
});

const textScale = (path: RulePath): Scale<string> => ({
  ...commonOf(parseText, path),
  lowered: (place) => place,
});

const commonOf = <P extends bigint | string>(
  parse: (text: string) => P | undefined,
  path: RulePath,
): Omit<Scale<P>, "lowered"> => ({
  read(item) {
    const text = item.read(path);
    return text === undefined ? undefined : parse(text);
  },
  parse,
  valueOf: (place) => ({ kind: "text", text: String(place) }),
  keyOf: (_, place) => keyOf([String(place)]),
  onlyKeyAt: (place) => keyOf([String(place)]),
});
