import type { Context } from "hono";
import type { EntryPlace } from "../../../bus/topics/entry-place.ts";
import type { Caller } from "../../../http/context.ts";
import { notFound } from "../../../http/errors.ts";
import { deleted } from "../../../http/fields.ts";
import { appParams, appScopeOf, requireApp } from "../../apps/app-scope.ts";
import { listOf, scannedOf } from "../../kit/answer.ts";
import { pathText } from "../../kit/params.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { eraseEvent } from "./erase.ts";
import { listNewestEvents, MAX_NEWEST_TOPICS } from "./newest.ts";
import { hasTopic, listEvents, MAX_SEARCHED } from "./queries.ts";
import {
  ENTRY_EXAMPLE,
  eventJson,
  eventSchema,
  isEntryId,
  listQuerySchema,
  newestEventsQuery,
  TOPIC_EXAMPLE,
} from "./schema.ts";

/** Path pattern for `{topic}/{entryId}`. Also accepts a topic whose slashes are not percent-encoded. */
const matched = {
  path: "/apps/:appId/events/:place{.+/[^/]+}",
  params(c: Context) {
    const place = c.req.param("place") ?? "";
    const split = place.lastIndexOf("/");
    return {
      appId: c.req.param("appId") ?? "",
      topic: place.slice(0, split),
      entryId: place.slice(split + 1),
    };
  },
};

export const events: Resource = {
  tag: "Events",
  params: {
    ...appParams,
    topic: pathText(/^[^\0]+$/su, "event", TOPIC_EXAMPLE),
    entryId: pathText(/^\d{1,20}-\d{1,20}$/, "event", ENTRY_EXAMPLE),
  },
  routes(deps) {
    const { db, topics } = deps;

    /**
     * Checks the topic and the entry id.
     * @throws ApiError 404 for an unknown topic, or an id with a part above 64 bits, which Redis rejects
     */
    async function requirePlace(
      caller: Caller,
      place: EntryPlace & { readonly appId: string },
    ): Promise<void> {
      if (!isEntryId(place.entryId) || !(await hasTopic(db, appScopeOf(caller, place), place.topic)))
        throw notFound("event");
    }

    return [
      defineRoute({
        at: "GET /events",
        operation: "listNewestEvents",
        summary: "List the newest events of all apps",
        description: `Lists the newest event first. \`X-Total-Count\` counts all events of the selected apps, channels and types; it ignores the time range, \`id\` and \`path\`. \`X-Scanned-Count\` counts the events that this page has skipped or read, so that the sum over the pages is the progress of a search. A response may contain fewer than \`limit\` events when the events are large, or while it searches.\n\nA filter by \`id\` or \`path\` searches up to ${MAX_SEARCHED} events or 16 MiB of data per page. Follow \`X-Next-Cursor\` to search further, also after an empty page.\n\nA page reads at most ${MAX_NEWEST_TOPICS} topics. If more are selected, set \`appId\`, \`channel\` or \`type\`.`,
        permission: "apps.read",
        query: newestEventsQuery,
        answer: scannedOf(eventSchema),
        async handle({ caller: { organizationId }, query, c }) {
          const { events, total, next, scanned } = await listNewestEvents(deps, organizationId, query);
          c.header("X-Total-Count", String(total));
          c.header("X-Scanned-Count", String(scanned));
          if (next !== undefined) c.header("X-Next-Cursor", next);
          return answerJson(c, `[${events.join(",")}]`);
        },
      }),
      defineRoute({
        at: "GET /apps/:appId/events",
        operation: "listEvents",
        summary: "List the events of an app",
        description:
          "Lists the events of all topics in order of time. A response may contain fewer than `limit` events when the events are large. With `from` or `to`, `X-Total-Count` stops at 10,000.\n\nA filter by `id` or `path` searches the first 5,000 events in that order, or the first 16 MiB of data. `X-Total-Count` then counts only the matches found up to the end of the page. Use `from` and `to` to search further.",
        query: listQuerySchema,
        answer: listOf(eventSchema),
        async handle({ caller, params, query, c }) {
          const scope = appScopeOf(caller, params);
          await requireApp(db, scope);
          const { events, total } = await listEvents(deps, scope, query);
          c.header("X-Total-Count", String(total));
          return answerJson(c, `[${events.join(",")}]`);
        },
      }),
      defineRoute({
        at: "GET /apps/:appId/events/:topic/:entryId",
        matched,
        operation: "getEvent",
        summary: "Get an event",
        answer: eventSchema,
        async handle({ caller, params, c }) {
          await requirePlace(caller, params);
          const entry = await topics.findEntry(params.topic, params.entryId);
          if (!entry) throw notFound("event");
          return answerJson(c, eventJson(params.topic, entry));
        },
      }),
      defineRoute({
        at: "DELETE /apps/:appId/events/:topic/:entryId",
        matched,
        operation: "deleteEvent",
        summary: "Delete an event",
        description:
          "Deletes the event for a privacy request: from its topic, from dead letters, from pending retries of handlers, from quarantine and from the stored deliveries. A quarantined or stored delivery is deleted as a whole if it contains the event's id. If the event had no id of its own, deliveries are compared by its data, if that has at least 64 bytes. Copies that readers and handlers have already received are not affected.",
        answer: deleted,
        async handle({ caller, params }) {
          await requirePlace(caller, params);
          await eraseEvent(deps, caller, params);
          return { id: params.entryId };
        },
      }),
    ];
  },
};

/** Sends JSON text unchanged, because parsing and serializing the text could alter large numbers. */
const answerJson = (c: Context, json: string): Response =>
  c.body(json, 200, { "content-type": "application/json" });
