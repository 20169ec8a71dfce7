import { Queue, type RepeatStrategy } from "bullmq";
import type { Cluster, Redis } from "ioredis";
import type { Log } from "../../log.ts";
import type { RedisBus } from "../connection/redis.ts";
import { nextTimeMs, parsePlan } from "./job-plan.ts";
import { type JobHandler, startJobWorker, type WorkOptions } from "./job-worker.ts";
import { createRedisTimeBackend } from "./redis-time-backend.ts";

export type BullQueue<D extends object> = Queue<object, void, string, D, void, string>;

export type Bull<D extends object> = ReturnType<typeof openBull<D>>;

export interface BullDeps {
  readonly redis: Pick<RedisBus, "endpoint">;
  readonly client: Redis | Cluster;
  readonly name: string;
  readonly prefix: string;
  /** Returns by how many ms this machine's clock is ahead of Redis. */
  readonly aheadMs: () => number;
  readonly log: Log;
}

/** Maximum length of BullMQ's event stream. It is short, because the gateway does not use the stream but cannot turn it off. */
const EVENTS_KEPT = 100;

/** Opens BullMQ's side of a job queue. Does not wait for Redis. */
export function openBull<D extends object>(deps: BullDeps) {
  const { redis, client, name, prefix, log } = deps;
  const backend = createRedisTimeBackend(deps.aheadMs);
  const queueOptions = {
    connection: client,
    prefix,
    // Makes calls fail at once while Redis is unreachable, instead of waiting for the connection.
    skipWaitingForReady: true,
    skipVersionCheck: true,
    streams: { events: { maxLen: EVENTS_KEPT } },
    settings: { repeatStrategy },
  };
  const queue: BullQueue<D> = new Queue(name, queueOptions, backend);
  queue.on("error", (error) => log.debug({ event: "jobs.queue_error", err: error }, "job queue error"));
  return {
    queue,
    work: (handler: JobHandler<D>, options: WorkOptions): AsyncDisposable =>
      startJobWorker({ redis, name, prefix, log, repeatStrategy, backend }, handler, options),
  };
}

/** Computes the next run of a repeated job. `pattern` contains a schedule in the format of `formatPlan`. */
const repeatStrategy: RepeatStrategy = (afterMs, { pattern }) =>
  pattern === undefined ? undefined : nextTimeMs(parsePlan(pattern), afterMs);
