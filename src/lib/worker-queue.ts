import { Worker } from "node:worker_threads";
import { FairQueue } from "../limits/fairness.ts";
import { UnavailableError } from "./errors.ts";

/** Result of a job that was stopped because it exceeded its CPU time or memory limit. */
export interface Exceeded {
  readonly kind: "exceeded";
}

export interface JobOptions {
  /** Owner of the job. Lanes are served round-robin, so an owner with many jobs does not delay the others. */
  readonly lane: string;
  /** Aborts when the caller no longer needs the result. A job that has not started is then removed from the queue. */
  readonly signal?: AbortSignal;
  /** Whether to accept the job even if its lane is full. The caller must then limit the number of such jobs itself. */
  readonly mayExceedQueue?: boolean;
}

export interface WorkerQueue<Q, A> extends AsyncDisposable {
  /**
   * Runs a job. Resolves with `exceeded` if the job exceeds its limits. The worker is then terminated, and a new one runs the
   * remaining jobs.
   *
   * @throws UnavailableError if the lane is full, the signal aborts before the job starts, the worker fails, or the queue is
   *   closed
   */
  readonly run: (request: Q, options: JobOptions) => Promise<A | Exceeded>;
}

export interface WorkerQueueOptions<Q> {
  /** Module that the worker thread runs. It posts `{ kind: "ready" }` after loading, and then one answer per message. */
  readonly program: URL;
  readonly name: string;
  /** CPU time limit per job, in ms. CPU time is used because elapsed time depends on the load of the machine. */
  readonly maxCpuMs: number;
  readonly maxQueuedPerLane: number;
  /** Heap size in MiB that a worker can always use. A worker that exceeds this size by 512 MiB is terminated. */
  readonly maxHeapMiB: number;
  /** Returns the message for a request, and the buffers to transfer instead of copying. By default, the whole request is copied. */
  readonly toSend?: (request: Q) => readonly [request: Q, moved: readonly ArrayBuffer[]];
}

interface Job<Q, A> {
  readonly request: Q;
  readonly resolve: (answer: A | Exceeded) => void;
  readonly reject: (error: Error) => void;
  /** Removes the abort listener, because a job that has started cannot be canceled. */
  readonly begin: () => void;
}

/** Maximum time in ms for a worker to load. Loading usually takes a third of a second, but much longer during a busy startup. */
const START_TIMEOUT_MS = 30_000;
const CHECKS_PER_LIMIT = 10;
const MAX_CHECK_INTERVAL_MS = 50;
/**
 * Maximum time in ms without a usage report from a worker thread. Threads report between JavaScript tasks, so a silent thread hangs
 * in native code.
 */
const MAX_SILENT_MS = 60_000;

/**
 * Difference between the heap limit of a worker and the limit that V8 enforces, in MiB. The queue terminates a worker halfway
 * between the two limits.
 *
 * A thread must never reach V8's limit. It would then have 16 MiB left to terminate, and a larger allocation would crash the whole
 * process.
 *
 * A worker within its own limit does not reach the halfway point, because V8 collects garbage before a heap has grown by half of
 * the remaining space.
 */
const HEAP_LEEWAY_MIB = 1_024;
/**
 * Maximum size of V8's young generation in MiB, a third of which can move to the old generation at once. V8's default of 192 MiB
 * would use much of `HEAP_LEEWAY_MIB`.
 */
const MAX_YOUNG_MIB = 48;
const MIB = 1024 * 1024;

/**
 * Returns the only environment variable that a worker needs. With cached code, a thread starts in half the time and does not load Node's
 * TypeScript compiler, which saves 25 MiB.
 */
function readCompileCacheVariable(): NodeJS.ProcessEnv {
  // biome-ignore lint/style/noProcessEnv: Node.js reads the variable, not Inlet
  const { NODE_COMPILE_CACHE } = process.env;
  return NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE };
}

/**
 * Creates a job queue with one worker thread. The thread starts with the first job, and keeps the process alive only while a job
 * runs.
 */
export function createWorkerQueue<Q, A extends { readonly kind: string }>(
  options: WorkerQueueOptions<Q>,
): WorkerQueue<Q, A> {
  const { name, maxCpuMs, maxHeapMiB, toSend = (request) => [request, []] } = options;
  const queue = new FairQueue<string, Job<Q, A>>();
  let worker: Worker | undefined;
  let isReady = false;
  let current: Job<Q, A> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;

  function take(): Job<Q, A> | undefined {
    const job = queue.shift();
    job?.begin();
    return job;
  }

  function next(): void {
    if (current || isClosed || queue.size === 0) return;
    worker ??= start();
    worker.ref();
    if (!isReady) return;
    const job = take();
    if (!job) return;
    current = job;
    try {
      const [request, moved] = toSend(job.request);
      worker.postMessage(request, moved);
      watch(worker, job);
    } catch (error) {
      // Keep the worker, because a request that cannot be cloned is the caller's mistake.
      settle((each) => each.reject(error instanceof Error ? error : new Error(String(error))));
    }
  }

  function start(): Worker {
    const started = new Worker(options.program, {
      name,
      env: readCompileCacheVariable(),
      execArgv: [],
      resourceLimits: {
        maxOldGenerationSizeMb: maxHeapMiB + HEAP_LEEWAY_MIB,
        maxYoungGenerationSizeMb: MAX_YOUNG_MIB,
      },
    });
    started.on("message", (answer: A | { readonly kind: "ready" }) => {
      if (started !== worker) return;
      if (isReady) return settle((job) => job.resolve(answer as A));
      clearTimeout(timer);
      isReady = true;
      next();
    });
    started.on("error", (error: Error & { readonly code?: string }) => {
      const isMemory = error.code === "ERR_WORKER_OUT_OF_MEMORY";
      lose(started, (job) =>
        isMemory
          ? job.resolve({ kind: "exceeded" })
          : job.reject(createLostError(`${name}: the worker failed`, error)),
      );
    });
    started.on("exit", () =>
      lose(started, (job) => job.reject(createLostError(`${name}: the worker exited`))),
    );
    timer = setTimeout(
      () => lose(started, (job) => job.reject(createLostError(`${name}: the worker did not start in time`))),
      START_TIMEOUT_MS,
    );
    return started;
  }

  /** Checks the CPU time and memory of the worker until the job ends or exceeds a limit. */
  function watch(which: Worker, job: Job<Q, A>): void {
    const isOver = (): boolean => current !== job || which !== worker;
    const checkMs = Math.min(MAX_CHECK_INTERVAL_MS, maxCpuMs / CHECKS_PER_LIMIT);
    let atFirst: NodeJS.CpuUsage | undefined;
    const check = async (): Promise<void> => {
      timer = setTimeout(
        () => lose(which, (each) => each.reject(createLostError(`${name}: the worker hangs`))),
        MAX_SILENT_MS,
      );
      const [now, heap] = await Promise.all([which.cpuUsage(), which.getHeapStatistics()]);
      if (isOver()) return;
      clearTimeout(timer);
      atFirst ??= now;
      const usedMs = (now.user + now.system - atFirst.user - atFirst.system) / 1000;
      const isFull = heap.used_heap_size > (maxHeapMiB + HEAP_LEEWAY_MIB / 2) * MIB;
      if (usedMs > maxCpuMs || isFull) lose(which, (each) => each.resolve({ kind: "exceeded" }));
      else arm();
    };
    // Checks the worker after an interval, because most jobs end earlier. If the thread has exited, the check rejects and the
    // "exit" event settles the job.
    const arm = (): void => {
      timer = setTimeout(() => void check().catch(() => {}), checkMs);
    };
    arm();
  }

  /** Removes a waiting job from its lane and rejects it. */
  function drop(lane: string, job: Job<Q, A>): void {
    queue.remove(lane, job);
    if (queue.size === 0 && !current) worker?.unref();
    job.reject(createCanceledError());
  }

  const createCanceledError = (): UnavailableError =>
    createLostError(`${name}: the caller has canceled the job`);

  /** Terminates a worker and settles its job. If the worker was never ready, the next waiting job is settled instead. */
  function lose(which: Worker, answer: (job: Job<Q, A>) => void): void {
    if (which !== worker) return;
    worker = undefined;
    if (!isReady) current ??= take();
    isReady = false;
    void which.terminate();
    settle(answer);
  }

  function settle(answer: (job: Job<Q, A>) => void): void {
    clearTimeout(timer);
    const job = current;
    current = undefined;
    worker?.unref();
    if (job) answer(job);
    next();
  }

  return {
    run: (request, { lane, signal, mayExceedQueue = false }) =>
      new Promise((resolve, reject) => {
        if (isClosed) return reject(createLostError(`${name}: the queue is closed`));
        if (signal?.aborted) return reject(createCanceledError());
        if (!mayExceedQueue && queue.sizeOf(lane) >= options.maxQueuedPerLane)
          return reject(createLostError(`${name}: too many jobs are waiting`));
        const leave = (): void => drop(lane, job);
        const begin = (): void => signal?.removeEventListener("abort", leave);
        const job: Job<Q, A> = { request, resolve, reject, begin };
        signal?.addEventListener("abort", leave, { once: true });
        queue.push(lane, job);
        next();
      }),
    [Symbol.asyncDispose]: async () => {
      isClosed = true;
      clearTimeout(timer);
      const ended = worker;
      worker = undefined;
      for (const job of [current, ...queue.drain()])
        job?.reject(createLostError(`${name}: the queue is closed`));
      current = undefined;
      await ended?.terminate();
    },
  };
}

const createLostError = (message: string, cause?: unknown): UnavailableError =>
  new UnavailableError(message, { cause });
