import { z } from "zod";
import { jsonSchemaDocument } from "../../event/definition.ts";
import { notFound } from "../../http/errors.ts";
import { type Shown, timestamp } from "../../http/fields.ts";
import { pageQuery } from "../../http/page.ts";
import { formatTimestamp } from "../../lib/clock.ts";
import { listOf } from "../kit/answer.ts";
import { listPage, omitUndefined } from "../kit/list-page.ts";
import { pathText } from "../kit/params.ts";
import type { Resource } from "../kit/resource.ts";
import { defineRoute } from "../kit/route.ts";
import { channelParams, getChannel } from "./app-channel.ts";
import { appScopeOf } from "./app-scope.ts";

export const schemaVersionSchema = z
  .object({
    type: z.string(),
    version: z.int().meta({ description: "Starts at 1. `dataschema` of an event ends with it." }),
    isCurrent: z.boolean().meta({ description: "Whether new events of the type are validated with it." }),
    createdAt: timestamp,
  })
  .meta({ id: "SchemaVersion", description: "A version of the schema of an event definition." });
export type SchemaVersion = Shown<z.output<typeof schemaVersionSchema>>;

/** Versions of the schemas of a channel's definitions, to which `dataschema` of its events refers. */
export const schemaVersions: Resource = {
  tag: "Channels",
  params: {
    ...channelParams,
    type: pathText(/^[^\0]{1,255}$/su, "schema version", "push").meta({
      description: "Type of the definition.",
    }),
    version: pathText(/^[1-9]\d{0,8}$/, "schema version", "1").meta({
      description: "Number of the version.",
    }),
  },
  routes: ({ db, keyring }) => [
    defineRoute({
      at: "GET /apps/:appId/channels/:channelId/schemas",
      operation: "listSchemaVersions",
      summary: "List the schema versions of a channel",
      description:
        "Lists the newest 20 versions of each definition's schema, ordered by type, then version. Includes definitions that were removed from the channel while their topic still has events.",
      permission: "apps.read",
      query: z.object({
        type: z.string().min(1).max(255).optional().describe("Type of a definition."),
        ...pageQuery,
      }),
      answer: listOf(schemaVersionSchema),
      async handle({ caller, params, query: { type, ...page } }) {
        const { number } = await getChannel(db, keyring, appScopeOf(caller, params), params.channelId);
        const versions = db
          .selectFrom("schemaVersions as v")
          .innerJoin("topics as t", "t.topic", "v.topic")
          .select(["t.type", "t.retiredAt", "t.schemaVersion", "v.version", "v.createdAt"])
          .where((eb) => eb.and(omitUndefined({ "t.channelNumber": number, "t.type": type })));
        const { items, total } = await listPage(versions, page, ["t.type", "v.version"]);
        const rendered = items.map(({ retiredAt, schemaVersion, version, createdAt, ...shown }) => ({
          ...shown,
          version,
          isCurrent: retiredAt === null && schemaVersion === version,
          createdAt: formatTimestamp(createdAt.getTime()),
        }));
        return { items: rendered, total };
      },
    }),
    defineRoute({
      at: "GET /apps/:appId/channels/:channelId/schemas/:type/:version",
      operation: "getSchemaVersion",
      summary: "Get a version of a definition's schema",
      description:
        "Returns the JSON Schema with which the data of an event was validated. `dataschema` of the event is the URL of this route.",
      permission: "apps.read",
      answer: jsonSchemaDocument,
      missing: "the channel does not exist, or the version was replaced by a newer one",
      async handle({ caller, params }) {
        const { number } = await getChannel(db, keyring, appScopeOf(caller, params), params.channelId);
        const row = await db
          .selectFrom("schemaVersions as v")
          .innerJoin("topics as t", "t.topic", "v.topic")
          .select("v.schema")
          .where("t.channelNumber", "=", number)
          .where("t.type", "=", params.type)
          .where("v.version", "=", Number(params.version))
          .executeTakeFirst();
        if (!row) throw notFound("schema version");
        return row.schema;
      },
    }),
  ],
};
