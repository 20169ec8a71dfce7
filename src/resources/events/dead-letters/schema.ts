import { z } from "zod";
import type { Row } from "../../../data/tables.ts";
import { id, type Shown, timeInput, timestamp } from "../../../http/fields.ts";
import { pageQuerySchema } from "../../../http/page.ts";

const attemptSchema = z.object({
  at: timestamp,
  status: z.int().nullable().meta({ description: "The HTTP status; null where no answer came." }),
  code: z
    .string()
    .meta({ description: "`http`, or what stood in the way of an answer.", example: "timeout" }),
  durationMs: z.int(),
});

/** A dead letter as the API answers it. */
export const deadLetterSchema = z
  .object({
    id: id("dl"),
    subscriptionId: id("sub"),
    topic: z.string(),
    entryId: z.string(),
    type: z.string(),
    reason: z.string().meta({ example: "HTTP 500" }),
    attempts: z.array(attemptSchema),
    event: z.record(z.string(), z.string()).meta({
      description: "The event as it stood on its topic: its attributes, and `data` or `data_base64` as text.",
    }),
    createdAt: timestamp,
  })
  .meta({ id: "DeadLetter", description: "An event that a handler did not take in all its attempts." });
export type DeadLetter = Shown<z.output<typeof deadLetterSchema>>;

const filters = {
  type: z.string().min(1).max(255).optional().describe("Events of that type alone."),
  from: timeInput.optional().describe("Dead since then."),
  to: timeInput.optional().describe("Dead until then."),
};

export type Filters = z.output<z.ZodObject<typeof filters>>;

export const listQuerySchema = z.strictObject({ ...pageQuerySchema.shape, ...filters });

export const redriveManySchema = z.strictObject({
  ...filters,
  dryRun: z.boolean().default(false).describe("Counts, and does nothing."),
  limit: z.int().min(1).max(1_000).default(1_000).describe("At most so many, the oldest first."),
});

export const redriveManyResultSchema = z
  .object({
    matched: z.int().meta({ description: "All that the filter fits." }),
    redriven: z.int().meta({ description: "How many of them are on their way again." }),
  })
  .meta({ id: "DeadLetterRedrive" });

export function renderDeadLetter(row: Row<"deadLetters">): DeadLetter {
  const { id, subscriptionId, topic, entryId, type, reason, attempts, fields, createdAt } = row;
  const names = fields.filter((_, at) => at % 2 === 0);
  return {
    id,
    subscriptionId,
    topic,
    entryId,
    type,
    reason,
    attempts,
    event: Object.fromEntries(names.map((name, at) => [name, fields[2 * at + 1] ?? ""])),
    createdAt: createdAt.toISOString(),
  };
}
