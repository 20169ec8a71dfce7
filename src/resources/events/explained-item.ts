import { z } from "zod";
import { type ExplainedItem, type ExplainedRule, MAX_EXPLAINED_DATA_CHARS } from "../../event/explained.ts";
import { type ItemFailure, QUARANTINE_REASONS } from "../../event/outcome.ts";
import type { Shown } from "../../http/fields.ts";

const faultFields = {
  reason: z.enum(QUARANTINE_REASONS),
  path: z.string().nullable().meta({
    description: "The definition's setting, or the JSON Pointer into the data, that the reason is about.",
  }),
  detail: z.string(),
};

const pathSchema = z
  .object({
    path: z.string(),
    values: z.array(z.string()).meta({ description: "What it yields, the first ten; a value may be cut." }),
    isCut: z.boolean(),
  })
  .nullable()
  .meta({ description: "Null where the definition has no such path." });

/** The explanation of one item, as the API answers it. */
export const explainedItemSchema = z
  .object({
    item: z.int().nullable().meta({ description: "From 0; null: the delivery as a whole." }),
    events: z.array(
      z.object({
        id: z.string(),
        type: z.string(),
        topic: z.string(),
        status: z.enum(["new", "duplicate", "conflict"]).meta({
          description: "Whether its id is known by now, with the same data or with other.",
        }),
        entryId: z.string().nullable().meta({ description: "The entry that has its id." }),
        data: z.string().nullable().meta({ description: "The event's data as text, its beginning." }),
        event: z.record(z.string(), z.unknown()).meta({
          description: `The event in the JSON format of CloudEvents 1.0 (structured mode), numbers as spelled; without \`data\` or \`data_base64\` where that is longer than ${MAX_EXPLAINED_DATA_CHARS} characters.`,
        }),
      }),
    ),
    failures: z.array(z.object({ ...faultFields, definitions: z.array(z.string()) })).meta({
      description: "Why it would be quarantined, or the delivery refused.",
    }),
    definitions: z
      .array(
        z.object({
          type: z.string(),
          topic: z.string(),
          matches: z.boolean(),
          typePath: pathSchema,
          idPath: pathSchema,
          payloadPath: pathSchema,
          failure: z.object(faultFields).nullable(),
        }),
      )
      .meta({
        description:
          "What each definition makes of it; of a delivery with many items those of the first alone.",
      }),
    closest: z.string().nullable().meta({
      description: "Of an item that no definition matches: the type of the one that came closest.",
    }),
  })
  .meta({ id: "ExplainedItem", description: "What one item of a delivery would become, step by step." });
export type ExplainedItemEntity = Shown<z.output<typeof explainedItemSchema>>;

/** The most items that an answer shows. */
export const MAX_EXPLAINED_ITEMS = 100;

export const renderExplainedItem = (explained: ExplainedItem): ExplainedItemEntity => ({
  ...explained,
  events: explained.events.map(({ data, ...event }) => ({
    ...event,
    data: data?.slice(0, MAX_EXPLAINED_DATA_CHARS) ?? null,
  })),
  failures: explained.failures.map(renderFailure),
  definitions: explained.definitions.map(renderDefinition),
});

export const renderFailure = (failure: ItemFailure) => ({
  ...renderFault(failure),
  definitions: failure.definitions,
});

export const renderDefinition = ({ failure, ...definition }: ExplainedRule) => ({
  ...definition,
  failure: failure && renderFault(failure),
});

const renderFault = ({ reason, path = null, detail }: Fault) => ({ reason, path, detail });

type Fault = Pick<ItemFailure, "reason" | "detail"> & { readonly path?: string | null };
