import { type Job as BullJob, type JobsOptions, Queue, type RepeatStrategy } from "bullmq";
import { withTimeout } from "../../lib/wait.ts";
import type { Log } from "../../log.ts";
import { openClient } from "../connection/general-connection.ts";
import type { RedisBus } from "../connection/redis.ts";
import { replyCode, toBusError } from "../connection/redis-errors.ts";
import { jobsPrefix } from "../keys.ts";
import { formatPlan, type JobPlan, nextTimeMs, parsePlan } from "./job-plan.ts";
import { type JobHandler, startJobWorker, type WorkOptions } from "./job-worker.ts";
import { createRedisTimeBackend } from "./redis-time-backend.ts";

export interface NewJob<D> {
  /** Letters, digits, `.`, `-`, `_`, not a number alone; there is one job of an id at a time. Absent: one of its own. */
  readonly id?: string;
  readonly data: D;
  /** Default 0. */
  readonly delayMs?: number;
  /** Begins before all that are due; one of the same id that waits gives way to it. */
  readonly isUrgent?: boolean;
  /** How often a handler that throws is called in all, with the worker's `backoffMs` between; default 1. */
  readonly attempts?: number;
}

export interface ScheduledJob {
  readonly id: string;
  /** When its next job is due. */
  readonly nextAtMs: number;
}

export type JobQueue<D extends object> = ReturnType<typeof openJobQueue<D>>;

/** How long Redis may take to answer before it counts as away. */
const PATIENCE_MS = 4_000;
/** Nobody reads the stream of a queue's events; it cannot be turned off. */
const EVENTS_KEPT = 100;
const PAGE = 500;
/** A job that is over leaves nothing behind: its outcome is written where it belongs. */
const LEAVE_NOTHING = { removeOnComplete: true, removeOnFail: true } as const;

/**
 * Jobs by time, for any worker: of each due job exactly one worker is told, and another where that one dies. At least once, not
 * exactly once: a handler must bear being called for a job that was done. All calls throw UnavailableError while Redis is away.
 *
 * Over BullMQ; in Cluster all of a queue is in one slot. Opening does not wait for Redis.
 *
 * @param deps.name names the queue among all; letters, digits, `-`
 */
export function openJobQueue<D extends object>(deps: {
  readonly redis: Pick<RedisBus, "endpoint">;
  readonly name: string;
  /** By how much this machine's clock is ahead of that of Redis, by which jobs are due; default: not at all. */
  readonly aheadMs?: () => number;
  readonly log: Log;
}) {
  const { redis, name, aheadMs = () => 0 } = deps;
  const log = deps.log.child({ queue: name });
  const prefix = jobsPrefix(name);
  const client = openClient(redis.endpoint, {});
  client.on("error", (error: Error) =>
    log.debug({ event: "redis.error", err: error }, "Redis connection of a queue"),
  );
  const backend = createRedisTimeBackend(aheadMs);
  const queueOptions = {
    connection: client,
    prefix,
    // Calls fail soon while Redis is away instead of waiting for it.
    skipWaitingForReady: true,
    skipVersionCheck: true,
    streams: { events: { maxLen: EVENTS_KEPT } },
    settings: { repeatStrategy },
  };
  const queue = new Queue<object, void, string, D, void, string>(name, queueOptions, backend);
  queue.on("error", (error) => log.debug({ event: "jobs.queue_error", err: error }, "an error of a queue"));

  async function bringForward(job: BullJob, delayMs: number): Promise<boolean> {
    // The score is the time, times 4,096, with a counter below: jobs of one millisecond keep their order.
    const score = await client.zscore(queue.toKey("delayed"), job.id ?? "");
    if (score === null) return (await job.getState()) === "waiting";
    if (Number(score) / 4_096 > Date.now() - aheadMs() + delayMs)
      await job.changeDelay(delayMs).catch(ignoreGone);
    return true;
  }

  return {
    /**
     * A job comes at each time of the plan until it is unscheduled, with this data. One that has waited while no worker was there
     * comes once, late. Setting the same again changes nothing.
     *
     * @param afterMs times of the plan until then are left out; default: those until now
     * @throws Error on a plan that has no next time.
     */
    schedule: (id: string, plan: JobPlan, data: D, afterMs = 0): Promise<void> =>
      ask(async () => {
        const repeat = { pattern: formatPlan(plan), startDate: afterMs };
        const job = await queue.upsertJobScheduler(id, repeat, { name, data, opts: LEAVE_NOTHING });
        if (!job) throw new Error(`the plan ${repeat.pattern} has no next time`);
      }),
    /** Its next job goes as well; one that a worker already has does not. */
    unschedule: (id: string): Promise<void> => ask(async () => void (await queue.removeJobScheduler(id))),
    isScheduled: (id: string): Promise<boolean> =>
      ask(async () => (await client.zscore(queue.toKey("repeat"), id)) !== null),
    /** Every one that is there from the beginning to the end of the listing; in pages, in no order, a few perhaps twice. */
    async *listScheduled(): AsyncGenerator<readonly ScheduledJob[], void> {
      let cursor = "0";
      do {
        const [next, page] = await ask(() => client.zscan(queue.toKey("repeat"), cursor, "COUNT", PAGE));
        cursor = next;
        yield page.flatMap((id, i) => (i % 2 ? [] : [{ id, nextAtMs: Number(page[i + 1]) }]));
      } while (cursor !== "0");
    },
    /**
     * Adds a job; where one of its id waits already it stays the one, and comes at the earlier of the two times. False where a
     * worker has that one just now, and nothing was added.
     */
    add: ({ id, data, delayMs = 0, isUrgent = false, attempts = 1 }: NewJob<D>): Promise<boolean> =>
      ask(async () => {
        if (isUrgent && id !== undefined) await queue.remove(id);
        const there = id === undefined ? undefined : await queue.getJob(id);
        if (there !== undefined) return bringForward(there, delayMs);
        const retries = attempts > 1 ? { attempts, backoff: { type: "custom" } } : {};
        const timestamp = Date.now() - aheadMs();
        const options: JobsOptions = {
          ...LEAVE_NOTHING,
          ...retries,
          timestamp,
          delay: delayMs,
          lifo: isUrgent,
        };
        await queue.add(name, data, id === undefined ? options : { ...options, jobId: id });
        return true;
      }),
    /** The data of the first of these jobs that is there. */
    findFirst: (ids: readonly string[]): Promise<D | undefined> =>
      ask(async () => {
        const there = await Promise.all(ids.map((id) => client.exists(queue.toKey(id))));
        const found = ids.find((_, at) => there[at] === 1);
        const job = found === undefined ? undefined : await queue.getJob(found);
        // Jobs of a queue have its data.
        return job?.data as D | undefined;
      }),
    /** Removes a job that no worker has. */
    remove: (id: string): Promise<void> => ask(async () => void (await queue.remove(id))),
    /** Hands due jobs to the handler until the worker is disposed of. */
    work: (handler: JobHandler<D>, options: WorkOptions): AsyncDisposable =>
      startJobWorker({ redis, name, prefix, log, repeatStrategy, backend }, handler, options),
    async [Symbol.asyncDispose]() {
      // A queue that was never ready would wait for that.
      client.disconnect();
      await queue
        .close()
        .catch((error: unknown) =>
          log.debug({ event: "jobs.queue_error", err: error }, "a queue did not close cleanly"),
        );
    },
  };
}

/** For BullMQ, whose own computation only says whether there is a next time; `pattern` is ours to read. */
const repeatStrategy: RepeatStrategy = (afterMs, { pattern }) =>
  pattern === undefined ? undefined : nextTimeMs(parsePlan(pattern), afterMs);

/** A job can have begun, or be over, between a look and the call. */
function ignoreGone(error: unknown): void {
  if (replyCode(error) !== undefined || !(error instanceof Error) || !("code" in error)) throw error;
}

async function ask<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await withTimeout(PATIENCE_MS, call(), `Redis has not answered within ${PATIENCE_MS} ms`);
  } catch (error) {
    throw toBusError(error);
  }
}
