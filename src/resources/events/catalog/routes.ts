import { holds } from "../../../http/callers/authorize.ts";
import { formatTimestamp } from "../../../lib/clock.ts";
import { mapBounded } from "../../../lib/map-bounded.ts";
import { appParams, appScopeOf, requireApp } from "../../apps/app-scope.ts";
import { listOf } from "../../kit/answer.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { listEventTypes } from "./event-types.ts";
import { findExamples, NO_EXAMPLE } from "./examples.ts";
import { catalogEntrySchema, catalogQuerySchema } from "./schema.ts";

const CONCURRENCY = 16;
const EXAMPLES_PERMISSION = "deliveries.read";

/** Descriptions of the event types of an app, for those who write its readers. */
export const eventCatalog: Resource = {
  tag: "Events",
  params: appParams,
  routes: (deps) => [
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
  ],
};
