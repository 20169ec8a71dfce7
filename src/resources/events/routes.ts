import { type Context, Hono } from "hono";
import type { ApiEnv } from "../../http/context.ts";
import { notFound } from "../../http/problem.ts";
import { appScopeOf, requireApp } from "../app-scope.ts";
import { type PlainResource, parseQuery, pathParam } from "../plain.ts";
import type { EntryPlace } from "./merge.ts";
import { type EventsDeps, hasTopic, listEvents } from "./queries.ts";
import { eventJson, listQuerySchema } from "./schema.ts";

/** `{topic}/{entryId}`: a topic is one segment, percent-encoded; with its slashes as they are it is understood as well. */
const ENTRY_PATH = "/:place{.+/[0-9]+-[0-9]+}";

export const events: PlainResource<EventsDeps> = {
  path: "/apps/:appId/events",
  create(deps) {
    const { db, topics } = deps;

    async function placeOf(c: Context<ApiEnv>): Promise<EntryPlace> {
      const place = pathParam(c, "place");
      const split = place.lastIndexOf("/");
      const topic = place.slice(0, split);
      const entryId = place.slice(split + 1);
      if (!isEntryId(entryId) || !(await hasTopic(db, appScopeOf(c), topic))) throw notFound("event");
      return { topic, entryId };
    }

    return new Hono<ApiEnv>()
      .get("/", async (c) => {
        const query = parseQuery(c, listQuerySchema);
        const scope = appScopeOf(c);
        await requireApp(db, scope);
        const { events, total } = await listEvents(deps, scope, query);
        c.header("X-Total-Count", String(total));
        return answerJson(c, `[${events.join(",")}]`);
      })
      .get(ENTRY_PATH, async (c) => {
        const { topic, entryId } = await placeOf(c);
        const entry = await topics.findEntry(topic, entryId);
        if (!entry) throw notFound("event");
        return answerJson(c, eventJson(topic, entry));
      })
      .delete(ENTRY_PATH, async (c) => {
        const { topic, entryId } = await placeOf(c);
        if (!(await topics.deleteEntry(topic, entryId))) throw notFound("event");
        return c.json({ id: entryId });
      });
  },
};

/** Two numbers of 64 bits: what Redis would refuse names nothing. */
function isEntryId(text: string): boolean {
  return text.split("-").every((part) => part.length <= 20 && BigInt(part) < 2n ** 64n);
}

const answerJson = (c: Context<ApiEnv>, json: string): Response =>
  c.body(json, 200, { "content-type": "application/json" });
