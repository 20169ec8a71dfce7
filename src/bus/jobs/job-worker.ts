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
import { replyCode, toBusError } from "../connection/redis-errors.ts";

export interface Job<D> {
  readonly id: string;
  readonly data: D;
  /** Due time, by the clock of Redis. */
  readonly dueAtMs: number;
  /** Number of starts of this job, including this one. Above 1 if the job was postponed or failed, or if its worker died. */
  readonly starts: number;
  readonly createdAtMs: number;
  /** Id of the schedule that created the job. `undefined` if the job was added directly. */
  readonly scheduleId: string | undefined;
  /**
   * Lets another job with the same name be added and wait while this one runs. Has no effect on jobs without a name.
   *
   * @throws UnavailableError
   */
  readonly stopWaiting: () => Promise<void>;
}

/**
 * Runs a job. Resolves with `undefined` when the job is finished, or with `postponeMs` to run it again later. If the handler throws, the
 * job is logged and removed.
 *
 * `signal` aborts when the worker stops. It also aborts when the job's lock could not be renewed in time, so that another worker may run
 * the job.
 */
export type JobHandler<D> = (
  job: Job<D>,
  options: { readonly signal: AbortSignal },
) => Promise<undefined | { readonly postponeMs: number }>;

export interface WorkOptions {
  readonly concurrency: number;
  /** Lock duration of a job, in ms. If a worker dies, others take its jobs within about twice this time. Default: 15,000. */
  readonly lockMs?: number;
  /** Maximum time in ms that disposal waits for running jobs. After it, their signals abort. Default: 2,000. */
  readonly graceMs?: number;
  /**
   * Maximum number of workers that may die while running the same job. The job is then dropped, because it may be the cause.
   * Default: 5.
   */
  readonly maxDeaths?: number;
}

const MAX_DEATHS = 5;
/** Polling interval in seconds. Workers must poll, because a worker that dies can lose the wake-up for the next job. */
const POLL_INTERVAL_S = 1;
/** Time in ms without a reply after which a connection counts as dead. Must exceed BullMQ's blocking reads of up to ten seconds. */
const SOCKET_TIMEOUT_MS = 15_000;
/** Pause in ms after an error reply such as OOM or READONLY, because BullMQ would retry at once. */
const PAUSE_AFTER_ERROR_MS = 1_000;
/** Time in ms without errors that ends an outage. The first error of a new outage is logged as a warning. */
const OUTAGE_GAP_MS = 30_000;
const ABORTED_GRACE_MS = 2_000;

/** Starts a worker that runs jobs. Disposal waits for running jobs and leaves all others to other workers. */
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
  const { concurrency, lockMs = 15_000, graceMs = 2_000 } = options;
  const stopping = new AbortController();
  /** One controller for each running job, because a signal shared by all jobs would accumulate listeners. */
  const inFlight = new Set<AbortController>();
  let onIdle = (): void => {};
  let failedAtMs = Number.NEGATIVE_INFINITY;
  let pausing: Promise<void> | undefined;

  async function process(job: BullJob<D>, token?: string, held?: AbortSignal): Promise<void> {
    const controller = new AbortController();
    inFlight.add(controller);
    try {
      const signal = held ? AbortSignal.any([controller.signal, held]) : controller.signal;
      const result = await handler(toJob(job), { signal });
      if (result === undefined) return;
      await job.moveToDelayed(Date.now() + result.postponeMs, token);
    } finally {
      inFlight.delete(controller);
      if (inFlight.size === 0) onIdle();
    }
    throw new DelayedError();
  }

  const client = openClient(redis.endpoint, {
    maxRetriesPerRequest: null,
    autoResendUnfulfilledCommands: true,
    socketTimeout: SOCKET_TIMEOUT_MS,
  });
  client.on("error", (error: Error) =>
    log.debug({ event: "redis.error", err: error }, "Redis connection error of a job worker"),
  );
  const workerOptions: WorkerOptions = {
    connection: client,
    prefix,
    concurrency,
    lockDuration: lockMs,
    stalledInterval: lockMs,
    maxStalledCount: options.maxDeaths ?? MAX_DEATHS,
    runRetryDelay: PAUSE_AFTER_ERROR_MS,
    drainDelay: POLL_INTERVAL_S,
    removeOnComplete: { count: 0 },
    removeOnFail: { count: 0 },
    settings: { repeatStrategy },
  };
  const worker = new Worker<D, void>(name, process, workerOptions, backend);
  worker.on("error", (error) => {
    // An outage ends only after a time without errors. A started job proves little, because a full Redis may still start delayed jobs.
    const isNew = performance.now() - failedAtMs > OUTAGE_GAP_MS && !stopping.signal.aborted;
    failedAtMs = performance.now();
    log[isNew ? "warn" : "debug"]({ event: "jobs.failing", err: error }, "Redis error: jobs are delayed");
    if (replyCode(error) !== undefined) pausing ??= pauseAfterError().catch(() => {});
  });
  worker.on("failed", (job, err) => log.warn({ event: "job.failed", err, job: job?.id }, "a job failed"));
  worker.on("lockRenewalFailed", (ids: string[]) => {
    for (const id of ids) worker.cancelJob(id, "the lock of the job was lost");
  });

  async function pauseAfterError(): Promise<void> {
    await worker.pause(true);
    await sleep(PAUSE_AFTER_ERROR_MS, stopping.signal);
    pausing = undefined;
    if (!stopping.signal.aborted) await worker.resume();
  }

  const idle = (): Promise<void> =>
    inFlight.size === 0
      ? Promise.resolve()
      : new Promise((resolve) => {
          onIdle = resolve;
        });

  async function stop(): Promise<void> {
    stopping.abort();
    // Skip BullMQ's `close()` while Redis is unreachable, because it would wait forever for its connection.
    const ended = client.status === "ready" ? worker.close() : idle();
    if (!(await endsWithin(graceMs, ended))) {
      for (const controller of inFlight) controller.abort();
      if (!(await endsWithin(ABORTED_GRACE_MS, ended))) {
        log.warn(
          { event: "jobs.left", jobs: inFlight.size },
          "jobs did not stop in time; other workers will run them again",
        );
      }
    }
    // Force the close, so that BullMQ stops waiting for running jobs and stops renewing their locks.
    worker.closing = undefined;
    await worker.close(true);
    client.disconnect();
    await pausing;
  }

  let stopped: Promise<void> | undefined;
  return { [Symbol.asyncDispose]: () => (stopped ??= stop()) };
}

function toJob<D>(job: BullJob<D>): Job<D> {
  return {
    id: job.id ?? "",
    data: job.data,
    dueAtMs: job.opts.prevMillis ?? job.timestamp + job.delay,
    starts: job.attemptsStarted,
    createdAtMs: job.timestamp,
    scheduleId: job.repeatJobKey,
    async stopWaiting() {
      await job.removeDeduplicationKey().catch((error: unknown) => {
        throw toBusError(error);
      });
    },
  };
}
