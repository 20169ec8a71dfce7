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
  /** Must be unique among waiting jobs. Letters, digits, `.`, `-`, `_`, but not only digits. Default: generated. */
  readonly id?: string;
  readonly data: D;
  /** Default: 0. */
  readonly delayMs?: number;
  /** Whether the job starts before all other due jobs. An urgent job replaces a waiting job with the same id. */
  readonly isUrgent?: boolean;
  /** Maximum number of handler calls for this job. A handler that throws is called again after the worker's `backoffMs`. Default: 1. */
  readonly attempts?: number;
}

export interface ScheduledJob {
  readonly id: string;
  readonly nextAtMs: number;
}

export type JobQueue<D extends object> = ReturnType<typeof openJobQueue<D>>;

/** A call fails with UnavailableError if Redis does not reply within this time. */
const TIMEOUT_MS = 4_000;
/** Maximum length of BullMQ's event stream, which Inlet does not use but cannot disable. */
const EVENTS_KEPT = 100;
const PAGE = 500;
/** Finished jobs are removed, because handlers store their outcomes elsewhere. */
const REMOVE_WHEN_DONE = { removeOnComplete: true, removeOnFail: true } as const;

/**
 * Opens a queue of timed jobs shared by all workers, on top of BullMQ. Each due job is given to one worker, and to another worker if the
 * first one dies. Execution is at least once, so handlers must be idempotent. All calls throw UnavailableError while Redis is unreachable.
 *
 * Opening does not wait for Redis. In a Cluster all keys of a queue are in one slot.
 *
 * @param deps.name unique name of the queue; letters, digits, `-`
 */
export function openJobQueue<D extends object>(deps: {
  readonly redis: Pick<RedisBus, "endpoint">;
  readonly name: string;
  /** Returns how many ms this machine's clock is ahead of Redis, whose time decides when jobs are due. Default: 0. */
  readonly aheadMs?: () => number;
  readonly log: Log;
}) {
  const { redis, name, aheadMs = () => 0 } = deps;
  const log = deps.log.child({ queue: name });
  const prefix = jobsPrefix(name);
  const client = openClient(redis.endpoint, {});
  client.on("error", (error: Error) =>
    log.debug({ event: "redis.error", err: error }, "Redis connection error of a job queue"),
  );
  const backend = createRedisTimeBackend(aheadMs);
  const queueOptions = {
    connection: client,
    prefix,
    // Makes calls fail immediately while Redis is unreachable, instead of waiting for it.
    skipWaitingForReady: true,
    skipVersionCheck: true,
    streams: { events: { maxLen: EVENTS_KEPT } },
    settings: { repeatStrategy },
  };
  const queue = new Queue<object, void, string, D, void, string>(name, queueOptions, backend);
  queue.on("error", (error) => log.debug({ event: "jobs.queue_error", err: error }, "job queue error"));

  async function bringForward(job: BullJob, delayMs: number): Promise<boolean> {
    // BullMQ's score is the time in ms times 4,096 plus a counter, which keeps the order of jobs within a millisecond.
    const score = await client.zscore(queue.toKey("delayed"), job.id ?? "");
    if (score === null) return (await job.getState()) === "waiting";
    if (Number(score) / 4_096 > Date.now() - aheadMs() + delayMs)
      await job.changeDelay(delayMs).catch(ignoreGone);
    return true;
  }

  return {
    /**
     * Adds a job with this data at each time of the plan, until it is unscheduled. If no worker was running at one or more of these times,
     * the job runs once, late. Scheduling the same plan again has no effect.
     *
     * @param afterMs times of the plan up to this one are skipped. Times in the past are always skipped.
     * @throws Error on a plan that has no next time.
     */
    schedule: (id: string, plan: JobPlan, data: D, afterMs = 0): Promise<void> =>
      callRedis(async () => {
        const repeat = { pattern: formatPlan(plan), startDate: afterMs };
        const job = await queue.upsertJobScheduler(id, repeat, { name, data, opts: REMOVE_WHEN_DONE });
        if (!job) throw new Error(`The plan ${repeat.pattern} has no next time.`);
      }),
    /** Removes a schedule and its next job, unless a worker has already taken that job. */
    unschedule: (id: string): Promise<void> =>
      callRedis(async () => void (await queue.removeJobScheduler(id))),
    isScheduled: (id: string): Promise<boolean> =>
      callRedis(async () => (await client.zscore(queue.toKey("repeat"), id)) !== null),
    /** Yields pages of schedules, unordered and possibly with duplicates. Includes every schedule that exists during the whole listing. */
    async *listScheduled(): AsyncGenerator<readonly ScheduledJob[], void> {
      let cursor = "0";
      do {
        const [next, page] = await callRedis(() =>
          client.zscan(queue.toKey("repeat"), cursor, "COUNT", PAGE),
        );
        cursor = next;
        yield page.flatMap((id, i) => (i % 2 ? [] : [{ id, nextAtMs: Number(page[i + 1]) }]));
      } while (cursor !== "0");
    },
    /**
     * Adds a job. If a job with this id is already waiting, only moves that job forward if the new time is earlier. If a worker is running
     * a job with this id, returns false without adding a job.
     */
    add: ({ id, data, delayMs = 0, isUrgent = false, attempts = 1 }: NewJob<D>): Promise<boolean> =>
      callRedis(async () => {
        if (isUrgent && id !== undefined) await queue.remove(id);
        const existing = id === undefined ? undefined : await queue.getJob(id);
        if (existing !== undefined) return bringForward(existing, delayMs);
        const retries = attempts > 1 ? { attempts, backoff: { type: "custom" } } : {};
        const timestamp = Date.now() - aheadMs();
        const options: JobsOptions = {
          ...REMOVE_WHEN_DONE,
          ...retries,
          timestamp,
          delay: delayMs,
          lifo: isUrgent,
        };
        await queue.add(name, data, id === undefined ? options : { ...options, jobId: id });
        return true;
      }),
    /** Returns the data of the first existing job among `ids`. */
    findFirst: (ids: readonly string[]): Promise<D | undefined> =>
      callRedis(async () => {
        const exist = await Promise.all(ids.map((id) => client.exists(queue.toKey(id))));
        const found = ids.find((_, at) => exist[at] === 1);
        const job = found === undefined ? undefined : await queue.getJob(found);
        // The cast is safe, because all jobs of this queue were added with data of type D.
        return job?.data as D | undefined;
      }),
    /** Removes a job, unless a worker is running it. */
    remove: (id: string): Promise<void> => callRedis(async () => void (await queue.remove(id))),
    work: (handler: JobHandler<D>, options: WorkOptions): AsyncDisposable =>
      startJobWorker({ redis, name, prefix, log, repeatStrategy, backend }, handler, options),
    async [Symbol.asyncDispose]() {
      // Disconnects first, because closing a queue that was never ready waits until it becomes ready.
      client.disconnect();
      await queue
        .close()
        .catch((error: unknown) =>
          log.debug({ event: "jobs.queue_error", err: error }, "closing a job queue failed"),
        );
    },
  };
}

/** `pattern` contains a plan in the format of `formatPlan`. */
const repeatStrategy: RepeatStrategy = (afterMs, { pattern }) =>
  pattern === undefined ? undefined : nextTimeMs(parsePlan(pattern), afterMs);

/** BullMQ throws an error with a `code` if the job has started or finished since its state was read. All other errors are rethrown. */
function ignoreGone(error: unknown): void {
  if (replyCode(error) !== undefined || !(error instanceof Error) || !("code" in error)) throw error;
}

async function callRedis<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await withTimeout(TIMEOUT_MS, call(), `Redis did not reply within ${TIMEOUT_MS} ms`);
  } catch (error) {
    throw toBusError(error);
  }
}
