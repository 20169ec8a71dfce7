import { z } from "zod";
import { type ExplainedItem, type ExplainedRule, MAX_EXPLAINED_DATA_CHARS } from "../../event/explained.ts";
import { type ItemFailure, QUARANTINE_REASONS } from "../../event/outcome.ts";
import type { Shown } from "../../http/fields.ts";

const faultFields = {
  reason: z.enum(QUARANTINE_REASONS),
  path: z.string().nullable().meta({
    description: "Setting of the definition, or JSON Pointer into the data, to which the reason refers.",
  }),
  detail: z.string(),
};

export const explainedPathSchema = z.object({
  path: z.string(),
  values: z
    .array(z.string())
    .meta({ description: "The first ten values that the path selects. Long values are truncated." }),
  isCut: z.boolean().meta({ description: "Whether the path selects more than ten values." }),
});

const pathSchema = explainedPathSchema
  .nullable()
  .meta({ description: "Null if the definition has no such path." });

export const explainedItemSchema = z
  .object({
    item: z
      .int()
      .nullable()
      .meta({ description: "Index of the item, from 0. Null for the delivery as a whole." }),
    events: z.array(
      z.object({
        id: z.string(),
        type: z.string(),
        topic: z.string(),
        status: z.enum(["new", "duplicate", "conflict"]).meta({
          description:
            "`new`: the id is not in use. `duplicate`: it was published with the same data. `conflict`: it was published with different data.",
        }),
        entryId: z
          .string()
          .nullable()
          .meta({ description: "Id of the entry that already has this event id." }),
        data: z
          .string()
          .nullable()
          .meta({
            description: `The event's data as text, truncated to ${MAX_EXPLAINED_DATA_CHARS} characters.`,
          }),
        event: z.record(z.string(), z.unknown()).meta({
          description: `The event in the JSON format of CloudEvents 1.0 (structured mode), with numbers as the sender wrote them. \`data\` and \`data_base64\` are omitted if longer than ${MAX_EXPLAINED_DATA_CHARS} characters.`,
        }),
      }),
    ),
    failures: z.array(z.object({ ...faultFields, definitions: z.array(z.string()) })).meta({
      description: "Reasons why the item would be quarantined or the delivery rejected.",
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
          ignored: z
            .object({
              path: z.string().meta({
                description: "JSON Pointer into the value that `when` is evaluated on.",
                example: "/item/action",
              }),
              detail: z.string(),
            })
            .nullable()
            .meta({ description: "Why `when` excludes the item. Null if it does not." }),
        }),
      )
      .meta({
        description: "Result of each definition. Omitted for later items of a delivery with many items.",
      }),
    closest: z.string().nullable().meta({
      description: "If no definition matches the item: type of the definition that comes closest.",
    }),
  })
  .meta({ id: "ExplainedItem", description: "How an item of a delivery would be processed, step by step." });
export type ExplainedItemEntity = Shown<z.output<typeof explainedItemSchema>>;

/** Maximum number of items of a delivery that a response explains. */
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

export const renderDefinition = ({ failure, ignored = null, ...definition }: ExplainedRule) => ({
  ...definition,
  ignored,
  failure: failure && renderFault(failure),
});

const renderFault = ({ reason, path = null, detail }: Fault) => ({ reason, path, detail });

type Fault = Pick<ItemFailure, "reason" | "detail"> & { readonly path?: string | null };
