import {
  type BackendFactory,
  type Job as BullJob,
  DelayedError,
  type RedisQueueBackend,
  type RepeatStrategy,
  Worker,
  type WorkerOptions,
} from "bullmq";
import { endsWithin, sleep } from "../../lib/sleep.ts";
import type { Log } from "../../log.ts";
import { openClient } from "../connection/general-connection.ts";
import type { RedisBus } from "../connection/redis.ts";
import { replyCode } from "../connection/redis-errors.ts";

/** A job as its handler gets it. */
export interface Job<D> {
  readonly id: string;
  readonly data: D;
  /** When it was to begin, by Redis time. */
  readonly dueAtMs: number;
  /** How often it was begun, this time included: more than once where it was put off, failed, or its worker died. */
  readonly starts: number;
  readonly createdAtMs: number;
  /** By which schedule it comes; undefined where it was added. */
  readonly scheduleId: string | undefined;
}

/**
 * Resolves when the job is over, or tells that it is to come again later. A throw is a failed attempt. `signal` aborts when the
 * worker stops, or when Redis could not be told for so long that the job is held for lost and given to another.
 */
export type JobHandler<D> = (
  job: Job<D>,
  options: { readonly signal: AbortSignal },
) => Promise<undefined | { readonly putOffMs: number }>;

export interface WorkOptions {
  readonly concurrency: number;
  /** Before the next attempt of a job whose handler threw for the n-th time; default a second, doubled each time. */
  readonly backoffMs?: (failures: number) => number;
  /** How long a worker that died keeps its jobs, and again about as long until others look for such jobs; default 15,000. */
  readonly lockMs?: number;
  /** How long disposal waits for the jobs under way before their signal aborts; default 2,000. */
  readonly graceMs?: number;
  /** A job whose workers died more often is dropped: it was perhaps the cause; default 5. */
  readonly maxDeaths?: number;
}

const MAX_DEATHS = 5;
/** A worker that dies takes along who was to wake up next: the others look so often by themselves. */
const LOOK_EVERY_S = 1;
/** More than it blocks for, ten seconds at most; a connection that is silent for longer is dead. */
const SILENCE_MS = 15_000;
/** BullMQ asks again at once after an error reply (full, read-only): no jobs are taken for so long. */
const REST_MS = 1_000;
/** An error that comes so long after the last one is another outage, and is a warning again. */
const QUIET_MS = 30_000;
const ABORTED_GRACE_MS = 2_000;

/** Disposal takes no more jobs, waits for those under way, and leaves to others those that do not end in time. */
export function startJobWorker<D extends object>(
  deps: {
    readonly redis: Pick<RedisBus, "endpoint">;
    readonly name: string;
    readonly prefix: string;
    readonly log: Log;
    readonly repeatStrategy: RepeatStrategy;
    readonly backend: BackendFactory<RedisQueueBackend>;
  },
  handler: JobHandler<D>,
  options: WorkOptions,
): AsyncDisposable {
  const { redis, name, prefix, log, repeatStrategy, backend } = deps;
  const { concurrency, backoffMs = doubledSecond, lockMs = 15_000, graceMs = 2_000 } = options;
  const stopping = new AbortController();
  /** One of each job under way: signals that outlive them by far would gather listeners. */
  const underWay = new Set<AbortController>();
  let onIdle = (): void => {};
  let failedAtMs = Number.NEGATIVE_INFINITY;
  let resting: Promise<void> | undefined;

  async function process(job: BullJob<D>, token?: string, held?: AbortSignal): Promise<void> {
    const ending = new AbortController();
    underWay.add(ending);
    try {
      const signal = held ? AbortSignal.any([ending.signal, held]) : ending.signal;
      const result = await handler(describe(job), { signal });
      if (result === undefined) return;
      await job.moveToDelayed(Date.now() + result.putOffMs, token);
    } finally {
      underWay.delete(ending);
      if (underWay.size === 0) onIdle();
    }
    throw new DelayedError();
  }

  const client = openClient(redis.endpoint, {
    maxRetriesPerRequest: null,
    autoResendUnfulfilledCommands: true,
    socketTimeout: SILENCE_MS,
  });
  client.on("error", (error: Error) =>
    log.debug({ event: "redis.error", err: error }, "Redis connection of a worker"),
  );
  const workerOptions: WorkerOptions = {
    connection: client,
    prefix,
    concurrency,
    lockDuration: lockMs,
    stalledInterval: lockMs,
    maxStalledCount: options.maxDeaths ?? MAX_DEATHS,
    runRetryDelay: REST_MS,
    drainDelay: LOOK_EVERY_S,
    removeOnComplete: { count: 0 },
    removeOnFail: { count: 0 },
    settings: { repeatStrategy, backoffStrategy: backoffMs },
  };
  const worker = new Worker<D, void>(name, process, workerOptions, backend);
  worker.on("error", (error) => {
    // A job that begins meanwhile says nothing: a full Redis refuses BullMQ's look for jobs, and lets one that was delayed begin.
    const isNew = performance.now() - failedAtMs > QUIET_MS && !stopping.signal.aborted;
    failedAtMs = performance.now();
    log[isNew ? "warn" : "debug"]({ event: "jobs.failing", err: error }, "jobs have to wait");
    if (replyCode(error) !== undefined) resting ??= rest().catch(() => {});
  });
  worker.on("failed", (job, err) => log.warn({ event: "job.failed", err, job: job?.id }, "a job has failed"));
  worker.on("lockRenewalFailed", (ids: string[]) => {
    for (const id of ids) worker.cancelJob(id, "held for lost");
  });

  async function rest(): Promise<void> {
    await worker.pause(true);
    await sleep(REST_MS, stopping.signal);
    resting = undefined;
    if (!stopping.signal.aborted) await worker.resume();
  }

  const idle = (): Promise<void> =>
    underWay.size === 0
      ? Promise.resolve()
      : new Promise((resolve) => {
          onIdle = resolve;
        });

  async function stop(): Promise<void> {
    stopping.abort();
    // While Redis is away BullMQ would wait, without end, for a connection to close that there is not.
    const ended = client.status === "ready" ? worker.close() : idle();
    if (!(await endsWithin(graceMs, ended))) {
      for (const ending of underWay) ending.abort();
      if (!(await endsWithin(ABORTED_GRACE_MS, ended))) {
        log.warn({ event: "jobs.left", jobs: underWay.size }, "jobs are left to the other workers");
      }
    }
    // Jobs that have not ended by now are not waited for, nor are their locks renewed.
    worker.closing = undefined;
    await worker.close(true);
    client.disconnect();
    await resting;
  }

  let stopped: Promise<void> | undefined;
  return { [Symbol.asyncDispose]: () => (stopped ??= stop()) };
}

function describe<D>(job: BullJob<D>): Job<D> {
  return {
    id: job.id ?? "",
    data: job.data,
    dueAtMs: job.opts.prevMillis ?? job.timestamp + job.delay,
    starts: job.attemptsStarted,
    createdAtMs: job.timestamp,
    scheduleId: job.repeatJobKey,
  };
}

const doubledSecond = (failures: number): number => 1_000 * 2 ** Math.min(failures - 1, 16);
