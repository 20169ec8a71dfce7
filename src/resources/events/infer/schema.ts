import { z } from "zod";
import type { Shown } from "../../../http/fields.ts";
import { DRIFT_GRADES, DRIFT_KINDS } from "../../../lib/json-schema/drift/find-drift.ts";

export const inferSchemaBody = z.strictObject({
  type: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe("Type of the definition. By default, infers schemas for all definitions of the channel."),
  sample: z
    .int()
    .min(1)
    .max(1_000)
    .default(200)
    .describe("Number of the newest events, and of the newest quarantined items, to read."),
  from: z
    .enum(["all", "events", "quarantine"])
    .default("all")
    .describe(
      "Source of the sample. From quarantine, only items with the reason `schema_mismatch` are read.",
    ),
  enumValues: z
    .boolean()
    .default(false)
    .describe(
      "Whether texts with few distinct values become an `enum`. With false, the schema contains no value of the sample.",
    ),
});

export const inferenceSchema = z
  .object({
    isCut: z.boolean().meta({
      description: "Whether the sample ended early because it would exceed 16 MiB.",
    }),
    types: z.array(
      z.object({
        type: z.string(),
        schema: z.record(z.string(), z.unknown()).meta({
          description:
            "JSON Schema that accepts every sampled event and item. Keys that look like ids are described by `additionalProperties`.",
        }),
        events: z.int().meta({ description: "Number of events that the schema was inferred from." }),
        quarantined: z.int().meta({
          description: "Number of quarantined items that the schema was inferred from.",
        }),
        failing: z.int().nullable().meta({
          description:
            "Number of sampled events and items that fail the definition's current schema. Null if it has none.",
        }),
        violations: z.array(z.object({ path: z.string(), message: z.string(), count: z.int() })).meta({
          description: "How the sample fails the current schema, by JSON Pointer, most frequent first.",
        }),
        drift: z
          .array(
            z.object({
              kind: z.enum(DRIFT_KINDS),
              grade: z.enum(DRIFT_GRADES),
              path: z.string(),
              count: z.int(),
            }),
          )
          .meta({
            description:
              "How the sample differs from the current schema, by JSON Pointer, breaking differences first. `breaking`: the schema rejects it. `warning`: the schema accepts it, but the newer half of the events differs from the older half. `info`: an undeclared field.",
          }),
        released: z.array(z.string()).meta({
          description: "Ids of the sampled quarantined items that the inferred schema accepts.",
        }),
      }),
    ),
  })
  .meta({
    id: "SchemaInference",
    description: "JSON Schemas inferred from the newest events and quarantined items of a channel.",
  });
export type SchemaInference = Shown<z.output<typeof inferenceSchema>>;
