import { z } from "zod";
import { jsonSchemaDocument } from "../../../event/definition.ts";
import { type Shown, timestamp } from "../../../http/fields.ts";
import { pageQuery } from "../../../http/page.ts";

/** Filter that all routes of the catalog have in common. */
export const channelFilter = {
  channel: z.string().min(1).max(64).optional().describe("Id or uid of a channel. Selects its event types."),
};

export const catalogQuerySchema = z.object({ ...channelFilter, ...pageQuery });
export const wholeCatalogQuerySchema = z.object(channelFilter);

/** Maximum length of an example, in characters of JSON. */
export const MAX_EXAMPLE_CHARACTERS = 65_536;

export const catalogEntrySchema = z
  .object({
    channelUid: z.string(),
    type: z.string(),
    topic: z.string().meta({
      description: "Name of the Redis stream.",
      example: "events.org_1.apps.app.event_received.app_1.main.push",
    }),
    schema: jsonSchemaDocument
      .nullable()
      .meta({ description: "JSON Schema of the event's data. Null if the definition has none." }),
    agents: z.boolean().meta({ description: "Whether AI agents may subscribe to the events of this type." }),
    example: z.unknown().meta({
      description: `Data of an example event, without secrets. Null without the permission \`deliveries.read\`, if there is no example, or if it is longer than ${MAX_EXAMPLE_CHARACTERS} characters.`,
    }),
    exampleSource: z.enum(["delivery", "preset"]).nullable().meta({
      description:
        "`delivery`: the newest stored delivery of the type. `preset`: the sample of the channel's preset.",
    }),
    eventsLastDay: z
      .int()
      .meta({ description: "Number of events of the last 24 hours that the topic still holds." }),
    eventsLastDayIsExact: z.boolean().meta({
      description:
        "False if more events may have been published: the topic has more than were counted, or retention has removed some.",
    }),
    lastSeenAt: timestamp
      .nullable()
      .meta({ description: "When the newest event was published, by Redis time. Null if there was none." }),
  })
  .meta({ id: "CatalogEntry", description: "An event type of an app, as its readers see it." });

export type CatalogEntry = Shown<z.output<typeof catalogEntrySchema>>;

export const asyncApiSchema = z
  .looseObject({
    asyncapi: z.literal("3.1.0"),
    info: z.looseObject({ title: z.string(), version: z.string() }),
    servers: z.record(z.string(), z.unknown()),
    channels: z.record(z.string(), z.unknown()),
    operations: z.record(z.string(), z.unknown()),
    components: z.record(z.string(), z.unknown()),
  })
  .meta({ id: "AsyncApiDocument", description: "An AsyncAPI 3.1 document." });

export type AsyncApiDocument = Shown<z.output<typeof asyncApiSchema>>;
