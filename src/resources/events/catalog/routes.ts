import { holds } from "../../../http/callers/authorize.ts";
import { formatTimestamp } from "../../../lib/clock.ts";
import { mapBounded } from "../../../lib/map-bounded.ts";
import { appParams, appScopeOf, requireApp } from "../../apps/app-scope.ts";
import { listOf, nonJsonAnswer } from "../../kit/answer.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { createDocuments } from "./documents.ts";
import { getAllEventTypes, listEventTypes, TOO_MANY_TYPES } from "./event-types.ts";
import { findExamples, NO_EXAMPLE } from "./examples.ts";
import { asyncApiSchema, catalogEntrySchema, catalogQuerySchema, wholeCatalogQuerySchema } from "./schema.ts";

const CONCURRENCY = 16;
const EXAMPLES_PERMISSION = "deliveries.read";

/** Descriptions of the event types of an app, for those who write its readers. */
export const eventCatalog: Resource = {
  tag: "Events",
  params: appParams,
  routes(deps) {
    const documents = createDocuments(() => deps.stopping);
    return [
      defineRoute({
        at: "GET /apps/:appId/catalog",
        operation: "listCatalog",
        summary: "List the event types of an app",
        description:
          "Lists the type of each event definition, ordered by channel, then type. A response may contain fewer than `limit` types when their schemas are large. Examples are searched in the newest 20 stored deliveries of each channel, and in at most 50 deliveries per request. Each delivery that provides an example is added to the audit log.",
        permission: "apps.read",
        reveals: EXAMPLES_PERMISSION,
        query: catalogQuerySchema,
        answer: listOf(catalogEntrySchema),
        async handle({ caller, params, query: { channel, ...page } }) {
          const { db, topics } = deps;
          const scope = appScopeOf(caller, params);
          await requireApp(db, scope);
          const { items, total } = await listEventTypes(deps, scope, { channel }, page);
          const examples = holds(caller, EXAMPLES_PERMISSION)
            ? await findExamples(deps, caller, items)
            : undefined;
          const rendered = await mapBounded(items, CONCURRENCY, async ({ topic, definition, ...named }) => {
            const { lastAppendedMs, lastDay, isExact } = await topics.readActivity(topic);
            return {
              channelUid: named.channelUid,
              type: named.type,
              topic,
              schema: definition.schema ?? null,
              agents: definition.agents === true,
              ...(examples?.get(topic) ?? NO_EXAMPLE),
              eventsLastDay: lastDay,
              eventsLastDayIsExact: isExact,
              lastSeenAt: lastAppendedMs === undefined ? null : formatTimestamp(lastAppendedMs),
            };
          });
          return { items: rendered, total };
        },
      }),
      defineRoute({
        at: "GET /apps/:appId/asyncapi.json",
        operation: "getAsyncApi",
        summary: "Get an AsyncAPI document of the events of an app",
        description:
          "Describes each topic as a channel with one message, a CloudEvent whose `data` has the definition's schema. The address of Redis is a server variable without a value.",
        permission: "apps.read",
        query: wholeCatalogQuerySchema,
        answer: asyncApiSchema,
        conflict: `${TOO_MANY_TYPES}; or the document takes too long to create`,
        async handle({ caller, params, query, c }) {
          const scope = appScopeOf(caller, params);
          const app = await requireApp(deps.db, scope);
          const types = await getAllEventTypes(deps, scope, query);
          const { uid, title } = app;
          const text = await documents.write({ kind: "asyncapi", app: { uid, title }, types }, scope);
          return c.body(text, 200, { "content-type": "application/json" });
        },
      }),
      defineRoute({
        at: "GET /apps/:appId/types.ts",
        operation: "getEventTypes",
        summary: "Get TypeScript types of the events of an app",
        description:
          "Returns a module with a type for the data of each event, and the interface `Events` for `createConsumer<Events>()` of `inlet-consumer`. Types that have no schema are `unknown`.",
        permission: "apps.read",
        query: wholeCatalogQuerySchema,
        answer: nonJsonAnswer("text/plain", "A TypeScript module."),
        conflict: `${TOO_MANY_TYPES}; or the module is longer than 4 MiB, or takes too long to create`,
        async handle({ caller, params, query, c }) {
          const scope = appScopeOf(caller, params);
          const { uid } = await requireApp(deps.db, scope);
          const types = await getAllEventTypes(deps, scope, query);
          return c.text(await documents.write({ kind: "types", appUid: uid, types }, scope));
        },
      }),
    ];
  },
};
