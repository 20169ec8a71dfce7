import { z } from "zod";
import { integer, pathText } from "./config-fields.ts";

/** How to handle an event whose id was published before. */
export interface ConflictRule {
  /** Values that identify an event: its id alone, or its id and its data. */
  readonly identity: "id" | "idAndData";
  /** Whether an event with known identity but other data is a conflict or counts as a duplicate. */
  readonly conflict: "report" | "duplicate";
}

/**
 * Rules for each value of `dedupe.onConflict`. With `publish`, no conflict is possible, because events with other data have another
 * identity.
 */
const CONFLICT_RULES = {
  quarantine: { identity: "id", conflict: "report" },
  duplicate: { identity: "id", conflict: "duplicate" },
  publish: { identity: "idAndData", conflict: "report" },
} as const satisfies Readonly<Record<string, ConflictRule>>;

export const onConflictSchema = z.enum(
  Object.keys(CONFLICT_RULES) as [keyof typeof CONFLICT_RULES, ...(keyof typeof CONFLICT_RULES)[]],
);

/** The config field `dedupe` of a channel. */
export const dedupeSchema = z.strictObject({
  windowSeconds: integer(0, 2_592_000, 86_400).describe(
    "Seconds for which an event id is remembered. 0 turns deduplication off.",
  ),
  by: z
    .enum(["id", "content"])
    .describe("How duplicates are recognized: by the event id, or by a hash of the whole item.")
    .default("id"),
  ignore: z
    .array(pathText)
    .min(1)
    .max(16)
    .optional()
    .describe(
      "Paths of values in the item that may differ between duplicates, such as a retry counter. Only allowed if `by` is `content`.",
    ),
  onConflict: onConflictSchema
    .default("quarantine")
    .describe("How to handle an event whose id is known but whose data differs."),
});

/** Returns how to handle events whose id was published before. */
export const getConflictRule = ({
  onConflict,
}: Pick<z.output<typeof dedupeSchema>, "onConflict">): ConflictRule => CONFLICT_RULES[onConflict];

/** Maximum time that passes between the decision whether an id may be forgotten, and the write. A poll takes at most five minutes. */
const MAX_DECISION_SECONDS = 300;

/**
 * Returns the age in seconds up to which an event of a window is certainly remembered. It is shorter than the window, because time passes
 * until the event is written, and because the provider's clock may be fast.
 */
export const toCertainSeconds = (windowSeconds: number): number =>
  windowSeconds - Math.min(MAX_DECISION_SECONDS, windowSeconds / 10);
