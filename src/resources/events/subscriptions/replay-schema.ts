import { z } from "zod";
import type { EntryPlace } from "../../../bus/topics/entry-merge.ts";
import { timeInput } from "../../../http/fields.ts";

/** Maximum value of `matched`. Further entries are not counted. */
export const MAX_COUNTED = 10_000;

const ENTRY_ID = /^\d{1,20}-\d{1,20}$/;
const MAX_TOPIC = 1_024;

const entryId = z
  .string()
  .regex(ENTRY_ID, "must be an entry id, such as 1769851800000-0")
  .refine((text) => !ENTRY_ID.test(text) || text.split("-").every((part) => BigInt(part) < 2n ** 64n), {
    error: "must consist of two 64-bit numbers",
  });

const placeSchema = z.strictObject({ topic: z.string().min(1).max(MAX_TOPIC), entryId });

/** Formats a place as `<entry id> <topic>`. Clients treat it as opaque and send it back as `after`. */
export const formatPlace = ({ entryId, topic }: EntryPlace): string => `${entryId} ${topic}`;

const afterSchema = z
  .string()
  .max(MAX_TOPIC + 42)
  .transform((text, context): EntryPlace => {
    const space = text.indexOf(" ");
    const parsed = placeSchema.safeParse({ entryId: text.slice(0, space), topic: text.slice(space + 1) });
    if (space > 0 && parsed.success) return parsed.data;
    context.addIssue({ code: "custom", message: "must be the `next` value of a previous response" });
    return z.NEVER;
  });

export const replaySchema = z
  .strictObject({
    from: timeInput.optional().describe("Selects events published at or after this time."),
    to: timeInput.optional().describe("Selects events published before this time."),
    types: z
      .array(z.string().min(1).max(255))
      .min(1)
      .max(100)
      .optional()
      .describe("Selects events of these types."),
    entries: z
      .array(placeSchema)
      .min(1)
      .max(1_000)
      .optional()
      .describe("Entries to send, instead of a range of times."),
    after: afterSchema
      .optional()
      .describe("Position to continue from: the `next` value of the previous response."),
    dryRun: z.boolean().default(false).describe("Whether to only count the matching events."),
    limit: z
      .int()
      .min(1)
      .max(1_000)
      .default(1_000)
      .describe("Maximum number of events to send from a range, the oldest first."),
  })
  .superRefine((body, context) => {
    if (body.entries === undefined) return;
    for (const field of ["from", "to", "types"] as const) {
      if (body[field] === undefined) continue;
      context.addIssue({ code: "custom", path: [field], message: "cannot be combined with entries" });
    }
  });
export type ReplayInput = z.output<typeof replaySchema>;

export const replayedSchema = z
  .object({
    matched: z.int().meta({
      description: `Number of matching events after the position \`after\`. At most ${MAX_COUNTED} are counted.`,
    }),
    replayed: z.int().meta({ description: "Number of events queued for the handler." }),
    next: z
      .string()
      .nullable()
      .meta({ description: "Value for `after` in the next request. Null if there are no more events." }),
  })
  .meta({ id: "Replay", description: "Result of sending past events to a handler again." });
