import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import { z } from "zod";
import { createTail } from "../../../bus/topics/tail.ts";
import type { Queryable } from "../../../data/database.ts";
import { createStillAllowed } from "../../../http/callers/authorize.ts";
import type { ApiEnv } from "../../../http/context.ts";
import { ApiError, invalidParameters } from "../../../http/errors.ts";
import { createStreamPlaces, type TakeStreamPlace } from "../../../http/stream-places.ts";
import { UnavailableError } from "../../../lib/errors.ts";
import { appParams, appScopeOf, requireApp } from "../../apps/app-scope.ts";
import { nonJsonAnswer } from "../../kit/answer.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { createStreamClient } from "./stream-client.ts";
import { createStreamHub, MAX_TOPICS, type StreamFilter } from "./stream-hub.ts";
import { createStreamLine } from "./stream-line.ts";
import { type Position, parsePosition } from "./stream-position.ts";

/** Maximum number of open streams per worker (then 503) and per caller (then 429). */
const PER_WORKER = 500;
const PER_CALLER = 20;
const BEAT_EVERY_MS = 15_000;
/** Interval of token checks, in ms. Together with the 3 s cache of callers, a revoked key's streams end within 5 s. */
const CHECK_EVERY_MS = 1_500;
/** Maximum time that a client may accept no data, in ms. After that, the stream disconnects the client. */
const MAX_STALL_MS = 10_000;
const RETRY_MS = 2_000;
const FULL_RETRY_AFTER_SECONDS = 10;
const HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
};

const querySchema = z.object({
  type: z.string().min(1).max(255).optional().describe("Selects events of this type."),
});

export const eventStream: Resource = {
  tag: "Events",
  params: appParams,
  routes(deps) {
    const { db, redis, stopping, log } = deps;
    const tail = createTail({ redis });
    const listTopics = (filter: StreamFilter) => findTopics(db, filter);
    const hub = createStreamHub({ tail, listTopics, stopping, log });
    const stillAllowed = createStillAllowed(deps);
    const takePlace = createStreamPlaces({ perCaller: PER_CALLER, perWorker: PER_WORKER });

    function requireRunning(): void {
      if (stopping.aborted) throw new UnavailableError("this gateway is stopping");
    }

    function open(
      c: Context<ApiEnv>,
      filter: StreamFilter,
      from: {
        readonly start: Position;
        readonly topics: readonly string[];
        readonly nowMs: number;
        readonly listedMs: number;
      },
      release: () => void,
    ): Response {
      const line = createStreamLine({ onRoom: () => void client.catchUp().catch(() => {}), onGone: close });
      const client = createStreamClient({ ...hub, tail, sink: line, start: from.start });
      const member = { ...filter, client, close };
      const beat = setInterval(client.beat, BEAT_EVERY_MS);
      const check = setInterval(() => void checkOn(), CHECK_EVERY_MS);

      function close(): void {
        clearInterval(beat);
        clearInterval(check);
        stopping.removeEventListener("abort", close);
        hub.leave(member);
        line.end();
        release();
      }

      async function checkOn(): Promise<void> {
        if (line.stalledMs() > MAX_STALL_MS) {
          close();
          (c.env as Partial<HttpBindings> | undefined)?.outgoing?.destroy();
        } else if (!(await stillAllowed(c, "apps.read").catch(() => false))) close();
      }

      stopping.addEventListener("abort", close);
      line.write(`retry: ${RETRY_MS}\n`);
      hub.join(member, from.topics, from.nowMs, from.listedMs);
      // Send the position after `join`, which determines the topics to catch up on. An earlier position would skip their entries.
      client.beat();
      return new Response(line.body, { headers: HEADERS });
    }

    return [
      defineRoute({
        at: "GET /apps/:appId/events/stream",
        operation: "streamEvents",
        summary: "Follow the events of an app",
        description: `Streams events as server-sent events. \`data\` is the event as \`getEvent\` returns it, and \`id\` is the reader's position. Events of one topic arrive in order.\n\nAt the start and every 15 seconds, an event named \`position\` moves the reader's position without an event of the app. Its data is \`{}\`. Ignore events with other names, which later versions may add.\n\nWithout \`Last-Event-ID\`, the stream starts with new events. With it, the stream continues after that position, as far back as topics retain events. Milliseconds since 1970 are also accepted, to start at that time. No retained event is skipped. Events repeat only if more than 100 topics were active within a few seconds.\n\nThe stream ends when the token becomes invalid, the gateway stops, or the reader is too slow. Reconnect to resume it. A stream can cover at most ${MAX_TOPICS} topics, and an API key can have at most ${PER_CALLER} streams per gateway.`,
        query: querySchema,
        answer: nonJsonAnswer("text/event-stream", "An endless stream of events."),
        async handle({ caller, params, query, c }) {
          const scope = appScopeOf(caller, params);
          await requireApp(db, scope);
          const filter = { appId: params.appId, type: query.type };
          const resumed = resumedFrom(c);
          requireRunning();
          // A HEAD response has no body. A stream opened for it would never be closed.
          if (c.req.method === "HEAD") return new Response(null, { headers: HEADERS });
          const release = takeOrThrow(takePlace, caller.keyId ?? caller.accountId);
          try {
            const listedAt = performance.now();
            const topics = await listTopics(filter);
            if (!topics) {
              const message = `is required because the app has more than ${MAX_TOPICS} topics`;
              throw invalidParameters([{ path: "type", message }]);
            }
            const places = topics.map((topic) => [topic, "0-0"] as const);
            const { timeMs: nowMs } = await tail.read(places, { entries: 0, bytes: 0 }, () => {});
            const start = resumed
              ? { ...resumed, sinceMs: Math.min(resumed.sinceMs, nowMs) }
              : { sinceMs: nowMs, exact: new Map() };
            // Check again, because the gateway may have begun to stop, and a stream opened now would never end.
            requireRunning();
            const listedMs = nowMs - (performance.now() - listedAt);
            return open(c, filter, { start, topics, nowMs, listedMs }, release);
          } catch (error) {
            release();
            throw error;
          }
        },
      }),
    ];
  },
};

/** Parses the `Last-Event-ID` header. @throws ApiError 400 if the header is invalid */
function resumedFrom(c: Context<ApiEnv>): Position | undefined {
  const text = c.req.header("last-event-id");
  if (text === undefined || text === "") return undefined;
  const position = parsePosition(text);
  if (position) return position;
  throw invalidParameters([
    { path: "Last-Event-ID", message: "must be an event id of this stream, or milliseconds since 1970" },
  ]);
}

/** Lists the topics of the filter. Returns `undefined` if the app was deleted or has more than `MAX_TOPICS` topics. */
async function findTopics(db: Queryable, filter: StreamFilter): Promise<readonly string[] | undefined> {
  const rows = await db
    .selectFrom("apps")
    .leftJoin("topics", (join) => {
      const ofApp = join.onRef("topics.appId", "=", "apps.id");
      return filter.type === undefined ? ofApp : ofApp.on("topics.type", "=", filter.type);
    })
    .select("topics.topic")
    .where("apps.id", "=", filter.appId)
    .orderBy("topics.topic")
    .limit(MAX_TOPICS + 1)
    .execute();
  if (rows.length === 0 || rows.length > MAX_TOPICS) return undefined;
  return rows.flatMap(({ topic }) => (topic === null ? [] : [topic]));
}

/**
 * Reserves a stream for a caller. Returns a function that releases it.
 *
 * @throws ApiError 429 at the caller's limit
 * @throws UnavailableError at the worker's limit
 */
function takeOrThrow(take: TakeStreamPlace, caller: string): () => void {
  const taken = take(caller);
  if (taken === "perCaller")
    throw new ApiError(
      "rate_limited",
      `This API key already has ${PER_CALLER} open event streams on this gateway. Close one, or try again later.`,
      { headers: { "Retry-After": String(FULL_RETRY_AFTER_SECONDS) } },
    );
  if (taken === "perWorker")
    throw new UnavailableError(`this gateway already has ${PER_WORKER} open event streams`, {
      retryAfterSeconds: FULL_RETRY_AFTER_SECONDS,
    });
  return taken;
}
