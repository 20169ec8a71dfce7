import { z } from "zod";
import type { EntryPlace } from "../../../bus/topics/entry-merge.ts";
import { timeInput } from "../../../http/fields.ts";

/** Entries that are counted; where there are more, `matched` is this number. */
export const MAX_COUNTED = 10_000;

const ENTRY_ID = /^\d{1,20}-\d{1,20}$/;
const MAX_TOPIC = 1_024;

const entryId = z
  .string()
  .regex(ENTRY_ID, "must be the id of an entry")
  .refine((text) => !ENTRY_ID.test(text) || text.split("-").every((part) => BigInt(part) < 2n ** 64n), {
    error: "must be two numbers of 64 bits",
  });

const placeSchema = z.strictObject({ topic: z.string().min(1).max(MAX_TOPIC), entryId });

/** `<entry id> <topic>`: nothing but what is handed back. */
export const formatPlace = ({ entryId, topic }: EntryPlace): string => `${entryId} ${topic}`;

const afterSchema = z
  .string()
  .max(MAX_TOPIC + 42)
  .transform((text, context): EntryPlace => {
    const space = text.indexOf(" ");
    const parsed = placeSchema.safeParse({ entryId: text.slice(0, space), topic: text.slice(space + 1) });
    if (space > 0 && parsed.success) return parsed.data;
    context.addIssue({ code: "custom", message: "must be `next` of an answer" });
    return z.NEVER;
  });

export const replaySchema = z
  .strictObject({
    from: timeInput.optional().describe("Appended at that time or later."),
    to: timeInput.optional().describe("Appended before that time."),
    types: z
      .array(z.string().min(1).max(255))
      .min(1)
      .max(100)
      .optional()
      .describe("Events of those types alone."),
    entries: z
      .array(placeSchema)
      .min(1)
      .max(1_000)
      .optional()
      .describe("Those entries, instead of a range of times."),
    after: afterSchema.optional().describe("`next` of the call that this one goes on from."),
    dryRun: z.boolean().default(false).describe("Counts, and sends nothing."),
    limit: z.int().min(1).max(1_000).default(1_000).describe("At most so many of a range, the oldest first."),
  })
  .superRefine((body, context) => {
    if (body.entries === undefined) return;
    for (const field of ["from", "to", "types"] as const) {
      if (body[field] === undefined) continue;
      context.addIssue({ code: "custom", path: [field], message: "does not go with entries" });
    }
  });
export type ReplayInput = z.output<typeof replaySchema>;

/** The result of a replay. */
export const replayedSchema = z
  .object({
    matched: z.int().meta({
      description: `How many there are, from \`after\` on; not counted beyond ${MAX_COUNTED}.`,
    }),
    replayed: z.int().meta({ description: "How many of them are on their way to the handler." }),
    next: z
      .string()
      .nullable()
      .meta({ description: "Where there is more: what `after` of the next call is to be." }),
  })
  .meta({ id: "Replay", description: "Events that are sent to a handler again." });
