import type { Context } from "hono";
import type { EntryPlace } from "../../../bus/topics/entry-merge.ts";
import type { Caller } from "../../../http/context.ts";
import { deleted } from "../../../http/fields.ts";
import { notFound } from "../../../http/problem.ts";
import { appParams, appScopeOf, requireApp } from "../../apps/app-scope.ts";
import { listOf } from "../../kit/answer.ts";
import { pathText } from "../../kit/params.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { eraseEvent } from "./erase.ts";
import { type EventsDeps, hasTopic, listEvents } from "./queries.ts";
import { ENTRY_EXAMPLE, eventJson, eventSchema, listQuerySchema, TOPIC_EXAMPLE } from "./schema.ts";

const params = {
  ...appParams,
  topic: pathText(/^[^\0]+$/su, "event", TOPIC_EXAMPLE),
  entryId: pathText(/^\d{1,20}-\d{1,20}$/, "event", ENTRY_EXAMPLE),
};

/** `{topic}/{entryId}`: a topic is one segment, percent-encoded; with its slashes as they are it is understood as well. */
const matched = {
  path: "/:place{.+/[^/]+}",
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

/** The events of an app, as they are on the bus. */
export const events: Resource<EventsDeps> = {
  path: "/apps/:appId/events",
  tag: "Events",
  routes(deps) {
    const { db, topics } = deps;

    /** @throws ApiError 404 where the app has no such topic, or the id is none that Redis takes: two numbers of 64 bits */
    async function requirePlace(
      caller: Caller,
      place: EntryPlace & { readonly appId: string },
    ): Promise<void> {
      const isEntryId = place.entryId.split("-").every((part) => BigInt(part) < 2n ** 64n);
      if (!isEntryId || !(await hasTopic(db, appScopeOf(caller, place), place.topic)))
        throw notFound("event");
    }

    return [
      defineRoute(
        {
          method: "get",
          path: "/",
          operation: "listEvents",
          summary: "List the events of an app",
          description:
            "Of all its topics, in order of time, or the newest first. By `id`, or `path` and `value`, the first 5,000 events in that order are searched, or the first 16 MiB of their data, and `X-Total-Count` counts what the answer and its offset hold: go on with `from` and `to`. With `from` or `to`, `X-Total-Count` does not count beyond 10,000; an answer may end early, before `limit`, when its events are large.",
          params: appParams,
          query: listQuerySchema,
          answer: listOf(eventSchema),
        },
        async ({ caller, params, query, c }) => {
          const scope = appScopeOf(caller, params);
          await requireApp(db, scope);
          const { events, total } = await listEvents(deps, scope, query);
          c.header("X-Total-Count", String(total));
          return answerJson(c, `[${events.join(",")}]`);
        },
      ),
      defineRoute(
        {
          method: "get",
          path: "/:topic/:entryId",
          matched,
          operation: "getEvent",
          summary: "Get an event",
          params,
          answer: eventSchema,
        },
        async ({ caller, params, c }) => {
          await requirePlace(caller, params);
          const entry = await topics.findEntry(params.topic, params.entryId);
          if (!entry) throw notFound("event");
          return answerJson(c, eventJson(params.topic, entry));
        },
      ),
      defineRoute(
        {
          method: "delete",
          path: "/:topic/:entryId",
          matched,
          operation: "deleteEvent",
          summary: "Delete an event",
          description:
            "For a privacy request: from its topic, from dead letters, from what is on its way to a handler once more, and from quarantine, with the whole delivery that it came in, by its id; by its data of 64 bytes or more where it had no id of its own. What readers have taken is theirs.",
          params,
          answer: deleted,
        },
        async ({ caller, params }) => {
          await requirePlace(caller, params);
          await eraseEvent(deps, caller, params);
          return { id: params.entryId };
        },
      ),
    ];
  },
};

/** JSON that is text already: parsed and written again, its numbers could change. */
const answerJson = (c: Context, json: string): Response =>
  c.body(json, 200, { "content-type": "application/json" });
