import { z } from "zod";
import type { Row } from "../../../data/tables.ts";
import { id, type Shown, timeInput, timestamp } from "../../../http/fields.ts";
import { pageQuerySchema } from "../../../http/page.ts";
import { pickFields } from "../../kit/pick-fields.ts";

const attemptSchema = z.object({
  at: timestamp,
  status: z.int().nullable().meta({ description: "HTTP status, or null if there was no response." }),
  code: z.string().meta({
    description: "`http` for an HTTP error, or the reason why there was no response.",
    example: "timeout",
  }),
  durationMs: z.int(),
});

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
      description:
        "The fields of the topic entry: attributes of the event, and `data` or `data_base64`, as text.",
    }),
    createdAt: timestamp,
  })
  .meta({ id: "DeadLetter", description: "An event that a handler did not accept in any attempt." });
export type DeadLetter = Shown<z.output<typeof deadLetterSchema>>;

const filters = {
  type: z.string().min(1).max(255).optional().describe("Selects events of this type."),
  from: timeInput.optional().describe("Selects dead letters created at or after this time."),
  to: timeInput.optional().describe("Selects dead letters created at or before this time."),
};

export type Filters = z.output<z.ZodObject<typeof filters>>;

export const listQuerySchema = z.strictObject({ ...pageQuerySchema.shape, ...filters });

export const redriveManySchema = z.strictObject({
  ...filters,
  dryRun: z.boolean().default(false).describe("Whether to only count the matching dead letters."),
  limit: z
    .int()
    .min(1)
    .max(1_000)
    .default(1_000)
    .describe("Maximum number of dead letters to send, the oldest first."),
});

export const redriveManyResultSchema = z
  .object({
    matched: z.int().meta({ description: "Number of dead letters that match the filter." }),
    redriven: z.int().meta({ description: "Number of dead letters queued for sending." }),
  })
  .meta({ id: "DeadLetterRedrive", description: "Result of sending dead letters again." });

export function renderDeadLetter(row: Row<"deadLetters">): DeadLetter {
  const { fields, createdAt } = row;
  const names = fields.filter((_, at) => at % 2 === 0);
  return {
    ...pickFields(deadLetterSchema.shape, row),
    event: Object.fromEntries(names.map((name, at) => [name, fields[2 * at + 1] ?? ""])),
    createdAt: createdAt.toISOString(),
  };
}
