import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import { z } from "zod";
import type { RedisBus } from "../../../bus/connection/redis.ts";
import { createTail } from "../../../bus/topics/tail.ts";
import type { Queryable } from "../../../data/database.ts";
import { createStillAllowed } from "../../../http/callers/authorize.ts";
import type { Identify } from "../../../http/callers/identify.ts";
import type { ApiEnv } from "../../../http/context.ts";
import { ApiError, invalidParameters } from "../../../http/problem.ts";
import { UnavailableError } from "../../../lib/errors.ts";
import type { Log } from "../../../log.ts";
import { appParams, appScopeOf, requireApp } from "../../apps/app-scope.ts";
import { nonJsonAnswer } from "../../kit/answer.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { createStreamClient } from "./stream-client.ts";
import { createStreamHub, MAX_TOPICS, type StreamFilter } from "./stream-hub.ts";
import { createStreamLine } from "./stream-line.ts";
import { type Position, parsePosition } from "./stream-position.ts";

export interface EventStreamDeps {
  readonly db: Queryable;
  readonly redis: RedisBus;
  readonly identify: Identify;
  readonly log: Log;
  /** Aborts when the gateway drains: streams end, and their readers come back elsewhere. */
  readonly stopping: AbortSignal;
}

/** Streams on this worker, and of one caller on it. */
const PER_WORKER = 500;
const PER_CALLER = 20;
const BEAT_EVERY_MS = 15_000;
/** With the time that a caller is remembered (three seconds): a key that is revoked ends its streams within five. */
const CHECK_EVERY_MS = 1_500;
/** A reader that takes nothing for so long of what waits for it is cut. */
const MAX_STALL_MS = 10_000;
const RETRY_MS = 2_000;
const FULL_RETRY_AFTER_SECONDS = 10;
const HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
};

const querySchema = z.object({
  type: z.string().min(1).max(255).optional().describe("Events of this type only."),
});

/** The events of an app while they come. */
export const eventStream: Resource<EventStreamDeps> = {
  path: "/apps/:appId/events",
  tag: "Events",
  routes(deps) {
    const { db, redis, stopping, log } = deps;
    const tail = createTail({ redis });
    const listTopics = (filter: StreamFilter) => findTopics(db, filter);
    const hub = createStreamHub({ tail, listTopics, stopping, log });
    const stillAllowed = createStillAllowed(deps);
    const takePlace = createPlaces();

    function requireRunning(): void {
      if (stopping.aborted) throw new UnavailableError("this worker is stopping");
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
      // Only now is it known what the reader lacks: before, its place would be that of all who have read everything.
      client.beat();
      return new Response(line.body, { headers: HEADERS });
    }

    return [
      defineRoute(
        {
          method: "get",
          path: "/stream",
          operation: "streamEvents",
          summary: "Follow the events of an app",
          description: `Server-sent events: each is an event of the app, \`data\` as \`getEvent\` answers it, \`id\` where the reader stands. Without \`Last-Event-ID\` it begins now; with it, it goes on from there, as far back as topics are kept (milliseconds since 1970 will do as an id, to begin at that time): nothing is left out, and nothing comes twice unless more than 100 topics were busy within seconds. Events of one topic come in order. It ends, to be resumed, when the token ends, the gateway stops, or the reader is too slow. At most ${MAX_TOPICS} topics, ${PER_CALLER} streams of one key on each worker.`,
          params: appParams,
          query: querySchema,
          answer: nonJsonAnswer("text/event-stream", "The events, without end."),
        },
        async ({ caller, params, query, c }) => {
          const scope = appScopeOf(caller, params);
          await requireApp(db, scope);
          const filter = { appId: params.appId, type: query.type };
          const resumed = resumedFrom(c);
          requireRunning();
          // Nobody would read it, and nobody would leave it.
          if (c.req.method === "HEAD") return new Response(null, { headers: HEADERS });
          const release = takePlace(caller.keyId ?? caller.accountId);
          try {
            const listedAt = performance.now();
            const topics = await listTopics(filter);
            if (!topics) {
              const message = `must be given: the app has more than ${MAX_TOPICS} topics`;
              throw invalidParameters([{ path: "type", message }]);
            }
            const places = topics.map((topic) => [topic, "0-0"] as const);
            const { timeMs: nowMs } = await tail.read(places, { entries: 0, bytes: 0 }, () => {});
            const start = resumed
              ? { ...resumed, sinceMs: Math.min(resumed.sinceMs, nowMs) }
              : { sinceMs: nowMs, exact: new Map() };
            // It may have begun to stop meanwhile: nobody would end the stream, nor read for it.
            requireRunning();
            const listedMs = nowMs - (performance.now() - listedAt);
            return open(c, filter, { start, topics, nowMs, listedMs }, release);
          } catch (error) {
            release();
            throw error;
          }
        },
      ),
    ];
  },
};

/** @throws ApiError 400 */
function resumedFrom(c: Context<ApiEnv>): Position | undefined {
  const text = c.req.header("last-event-id");
  if (text === undefined || text === "") return undefined;
  const position = parsePosition(text);
  if (position) return position;
  throw invalidParameters([{ path: "Last-Event-ID", message: "is not the id of an event of this stream" }]);
}

/** Undefined where the app is gone, or has too many. */
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
 * Takes a place for a stream of that caller; the answer gives it back, once.
 *
 * @throws ApiError 429 where the caller has its share, UnavailableError where the worker is full
 */
function createPlaces(): (caller: string) => () => void {
  const taken = new Map<string, Set<symbol>>();
  let all = 0;
  return (caller) => {
    const ours = taken.get(caller) ?? new Set();
    if (ours.size >= PER_CALLER) {
      throw new ApiError(
        "rate_limited",
        `There are ${PER_CALLER} streams of this key on this worker already.`,
        {
          headers: { "Retry-After": String(FULL_RETRY_AFTER_SECONDS) },
        },
      );
    }
    if (all >= PER_WORKER) {
      const retryAfterSeconds = FULL_RETRY_AFTER_SECONDS;
      throw new UnavailableError("this worker has all the event streams that it can", { retryAfterSeconds });
    }
    const place = Symbol();
    taken.set(caller, ours.add(place));
    all++;
    return () => {
      if (!ours.delete(place)) return;
      all--;
      if (ours.size === 0 && taken.get(caller) === ours) taken.delete(caller);
    };
  };
}
