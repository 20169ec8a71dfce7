import { Worker } from "node:worker_threads";
import { UnavailableError } from "./errors.ts";

/** The job passed its bound of CPU time or memory. */
export interface Exceeded {
  readonly kind: "exceeded";
}

/** Who asks for a job. */
export interface Asker {
  /** Lanes take turns, however many jobs each of them has. */
  readonly lane: string;
  /** Aborts when nobody waits any more: a job that is not begun leaves its lane, and its request is let go of. */
  readonly signal?: AbortSignal;
  /** True of one that a full lane does not refuse: how many such jobs there are is its own care. */
  readonly isUnhurried?: boolean;
}

/** A worker thread that does one job after the other. */
export interface WorkerQueue<Q, A> extends AsyncDisposable {
  /**
   * `exceeded`: the worker is ended, and the jobs behind go to a new one.
   *
   * @throws UnavailableError when the lane is full, nobody waits any more, the worker is lost, or the queue is closed.
   */
  readonly run: (request: Q, asker: Asker) => Promise<A | Exceeded>;
}

export interface WorkerQueueOptions<Q> {
  /** The worker's module; it posts `{ kind: "ready" }` once it has loaded, then one answer for each message. */
  readonly program: URL;
  readonly name: string;
  /** Of one job: of processor time, so that a machine that does other things too refuses nothing for it. */
  readonly maxCpuMs: number;
  readonly maxQueuedPerLane: number;
  /** What a worker may surely hold, garbage apart: it is ended where it holds 512 MiB more. */
  readonly maxHeapMiB: number;
  /** A request as it is sent, and memory of it that is moved to the worker; default: all of it is copied. */
  readonly toSend?: (request: Q) => readonly [request: Q, moved: readonly ArrayBuffer[]];
}

interface Job<Q, A> {
  readonly request: Q;
  readonly resolve: (answer: A | Exceeded) => void;
  readonly reject: (error: Error) => void;
  /** Ends the watch on its asker. */
  readonly begin: () => void;
}

/** Loading takes a third of a second; a machine that is busy starting up may take many times that. */
const START_TIMEOUT_MS = 30_000;
const LOOKS_PER_BOUND = 10;
const MAX_LOOK_MS = 50;
/** A thread tells of itself between two steps of JavaScript: one that does not for so long hangs in one step. */
const MAX_SILENT_MS = 60_000;

/**
 * Node leaves a thread that reaches V8's limit 16 MiB to end in; one that takes more at once ends the whole process. So V8's limit lies
 * so much above what a worker may hold, and half way between the two the worker is ended from outside. V8 begins to collect before that
 * where the worker holds no more than it may: it lets a heap grow by half of what is left to its limit at most.
 */
const HEAP_LEEWAY_MIB = 1_024;
/** All that survives in the young generation, a third of it, is moved to the old at once: V8's own 192 MiB would be much of that leeway. */
const MAX_YOUNG_MIB = 48;
const MIB = 1024 * 1024;

/** The worker starts with the first job, and keeps the process alive only while it has one. */
export function createWorkerQueue<Q, A extends { readonly kind: string }>(
  options: WorkerQueueOptions<Q>,
): WorkerQueue<Q, A> {
  const { name, maxCpuMs, maxHeapMiB, toSend = (request) => [request, []] } = options;
  const lanes = new Map<string, Set<Job<Q, A>>>();
  let worker: Worker | undefined;
  let isReady = false;
  let current: Job<Q, A> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;

  /** The next job of the lane that was served longest ago; the lane goes behind all others. */
  function take(): Job<Q, A> | undefined {
    for (const [lane, jobs] of lanes) {
      lanes.delete(lane);
      const [job] = jobs;
      if (job === undefined) continue;
      jobs.delete(job);
      if (jobs.size > 0) lanes.set(lane, jobs);
      job.begin();
      return job;
    }
    return undefined;
  }

  function next(): void {
    if (current || isClosed || lanes.size === 0) return;
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
      // A value that cannot be cloned is its caller's mistake, and no reason to end the worker.
      settle((each) => each.reject(error instanceof Error ? error : new Error(String(error))));
    }
  }

  function start(): Worker {
    const started = new Worker(options.program, {
      name,
      env: {},
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
        isMemory ? job.resolve({ kind: "exceeded" }) : job.reject(lost(`${name}: the worker failed`, error)),
      );
    });
    started.on("exit", () => lose(started, (job) => job.reject(lost(`${name}: the worker ended`))));
    timer = setTimeout(
      () => lose(started, (job) => job.reject(lost(`${name}: the worker does not start`))),
      START_TIMEOUT_MS,
    );
    return started;
  }

  /** Looks at the thread's CPU time and memory until the job is done or has used up its own. */
  function watch(which: Worker, job: Job<Q, A>): void {
    const isOver = (): boolean => current !== job || which !== worker;
    const lookMs = Math.min(MAX_LOOK_MS, maxCpuMs / LOOKS_PER_BOUND);
    let atFirst: NodeJS.CpuUsage | undefined;
    const look = async (): Promise<void> => {
      timer = setTimeout(
        () => lose(which, (each) => each.reject(lost(`${name}: the worker hangs`))),
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
    // Most jobs are done before the first look. A thread that has ended tells nothing; its "exit" answers the job.
    const arm = (): void => {
      timer = setTimeout(() => void look().catch(() => {}), lookMs);
    };
    arm();
  }

  /** Its lane keeps its turn among the others. */
  function drop(lane: string, jobs: Set<Job<Q, A>>, job: Job<Q, A>): void {
    jobs.delete(job);
    if (jobs.size === 0 && lanes.get(lane) === jobs) lanes.delete(lane);
    if (lanes.size === 0 && !current) worker?.unref();
    job.reject(nobodyWaits());
  }

  const nobodyWaits = (): UnavailableError => lost(`${name}: nobody waits for the job any more`);

  /** A worker that is gone or must go: its job is answered, a worker that never started takes a job with it. */
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
    run: (request, { lane, signal, isUnhurried = false }) =>
      new Promise((resolve, reject) => {
        const jobs = lanes.get(lane) ?? new Set();
        if (isClosed) return reject(lost(`${name}: closed`));
        if (signal?.aborted) return reject(nobodyWaits());
        if (!isUnhurried && jobs.size >= options.maxQueuedPerLane)
          return reject(lost(`${name}: too many jobs wait`));
        const leave = (): void => drop(lane, jobs, job);
        const begin = (): void => signal?.removeEventListener("abort", leave);
        const job: Job<Q, A> = { request, resolve, reject, begin };
        signal?.addEventListener("abort", leave, { once: true });
        jobs.add(job);
        lanes.set(lane, jobs);
        next();
      }),
    [Symbol.asyncDispose]: async () => {
      isClosed = true;
      clearTimeout(timer);
      const ended = worker;
      worker = undefined;
      for (const job of [current, ...[...lanes.values()].flatMap((jobs) => [...jobs])])
        job?.reject(lost(`${name}: closed`));
      lanes.clear();
      current = undefined;
      await ended?.terminate();
    },
  };
}

const lost = (message: string, cause?: unknown): UnavailableError => new UnavailableError(message, { cause });
