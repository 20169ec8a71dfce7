import { createHash } from "node:crypto";
import type { EntryPlace } from "../../../bus/topics/entry-place.ts";
import { conflict } from "../../../http/errors.ts";
import { createId } from "../../../lib/ids.ts";
import { appScopeOf, subscriptionParams } from "../../apps/app-scope.ts";
import type { Deps } from "../../kit/deps.ts";
import { recordUse } from "../../kit/record-use.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { getSubscription } from "./queries.ts";
import { findNamed, findRange, type Selected } from "./replay-entries.ts";
import { formatPlace, replayedSchema, replaySchema } from "./schema.ts";

/** Maximum size of the events that one request queues, in characters. The client sends another request with `next` for the rest. */
const MAX_CHARACTERS = 32 * 1024 * 1024;
const AT_ONCE = 8;

/** Routes that send past events of a subscription to its handler again. */
export const replays: Resource = {
  tag: "Subscriptions",
  params: subscriptionParams,
  routes: (deps) => [
    defineRoute({
      at: "POST /apps/:appId/subscriptions/:subscriptionId/replay",
      operation: "replaySubscription",
      summary: "Replay events to the handler",
      description:
        "Sends past events to this subscription's handler: those of a range of times, or the given entries. The oldest are sent first, but new events may arrive in between. If the handler relies on order, rewind the subscription instead. With `dryRun`, only counts the events.\n\nIf `next` in the response is not null, there are more events. Repeat the request with `after` set to it.",
      body: replaySchema,
      answer: replayedSchema,
      creates: true,
      missing: "the subscription or one of the entries does not exist",
      conflict: "the subscription has no handler",
      async handle({ caller, params, body, c }) {
        const scope = appScopeOf(caller, params);
        const { row, topics } = await getSubscription(deps.db, scope, params.subscriptionId);
        if (row.handler === null)
          throw conflict("The subscription has no handler. Rewind it to read events again.");
        const selected =
          body.entries === undefined
            ? await findRange(deps, { appId: row.appId, topics }, body)
            : await findNamed(deps, topics, body.entries, body.after);
        if (body.dryRun) return { matched: selected.matched, replayed: 0, next: null };
        await recordUse(deps, caller, "replay", "subscription", [row.id]);
        const demand = demandOf(c.req.header("Idempotency-Key"), caller.keyId, row.id, deps.clock());
        return replay(deps, row.id, demand, selected);
      },
    }),
  ],
};

/** Creates the id of a replay. Requests with the same `Idempotency-Key` get the same id, so that a retry does not queue events twice. */
function demandOf(key: string | undefined, keyId: string | null, id: string, nowMs: number): string {
  if (key === undefined) return createId("rp", nowMs);
  return `rp_${createHash("sha256").update(`${keyId}\n${id}\n${key}`).digest("hex").slice(0, 32)}`;
}

async function replay(
  { topics, sendAgain, clock }: Deps,
  subscriptionId: string,
  demand: string,
  { matched, places }: Selected,
): Promise<{ readonly matched: number; readonly replayed: number; readonly next: string | null }> {
  let replayed = 0;
  let characters = 0;
  let last: EntryPlace | undefined;
  let at = 0;
  for (; at < places.length && characters < MAX_CHARACTERS; at += AT_ONCE) {
    const some = places.slice(at, at + AT_ONCE);
    const found = await Promise.all(
      some.map(async ({ topic, entryId }) => {
        const entry = await topics.findEntry(topic, entryId);
        // Retention removed the entry after it was selected.
        if (entry === undefined) return 0;
        const fields = Object.entries(entry.fields).flat();
        const delivery = { subscriptionId, topic, entryId, fields, firstAtMs: clock(), attempts: [] };
        await sendAgain(demand, delivery);
        replayed++;
        return fields.reduce((sum, text) => sum + text.length, 0);
      }),
    );
    characters += found.reduce((sum, length) => sum + length, 0);
    last = some.at(-1);
  }
  const isAll = at >= places.length && matched <= places.length;
  return { matched, replayed, next: isAll || last === undefined ? null : formatPlace(last) };
}
