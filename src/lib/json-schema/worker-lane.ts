import { Worker } from "node:worker_threads";
import { UnavailableError } from "../errors.ts";
import type { Reply, Request } from "./protocol.ts";

/** A worker thread that does one job after the other, each within a bound of time and memory. */
export interface WorkerLane extends AsyncDisposable {
  /**
   * `exceeded` when the job passed the bound of time or memory: the worker is ended, and the jobs behind it go to a new
   * one.
   *
   * @throws UnavailableError when the queue is full, the worker is lost, or the lane is closed.
   */
  run(request: Request): Promise<Reply | { readonly kind: "exceeded" }>;
}

interface Job {
  readonly request: Request;
  readonly resolve: (reply: Reply | { readonly kind: "exceeded" }) => void;
  readonly reject: (error: Error) => void;
}

export interface WorkerLaneOptions {
  /** Of one job, from when the worker takes it. */
  readonly timeoutMs: number;
  readonly maxQueued: number;
  readonly maxHeapMiB: number;
}

/** Loading takes a third of a second; a machine that is busy starting up may take many times that. */
const START_TIMEOUT_MS = 30_000;

/** The worker starts with the first job, and keeps the process alive only while it has one. */
export function createWorkerLane(options: WorkerLaneOptions): WorkerLane {
  const queue: Job[] = [];
  let worker: Worker | undefined;
  let isReady = false;
  let current: Job | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;

  function next(): void {
    if (current || isClosed || queue.length === 0) return;
    worker ??= start();
    worker.ref();
    if (!isReady) return;
    const job = queue.shift();
    if (!job) return;
    current = job;
    arm(options.timeoutMs);
    try {
      worker.postMessage(job.request);
    } catch (error) {
      // A value that cannot be cloned is its caller's mistake, and no reason to end the worker.
      settle((each) => each.reject(error instanceof Error ? error : new Error(String(error))));
    }
  }

  function start(): Worker {
    const started = new Worker(new URL("./worker.ts", import.meta.url), {
      name: "json-schema",
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: options.maxHeapMiB },
    });
    started.on("message", (reply: Reply) => {
      if (started !== worker) return;
      if (reply.kind !== "ready") return settle((job) => job.resolve(reply));
      clearTimeout(timer);
      isReady = true;
      next();
    });
    started.on("error", (error: Error & { readonly code?: string }) => {
      const isMemory = error.code === "ERR_WORKER_OUT_OF_MEMORY";
      lose(started, (job) =>
        isMemory ? job.resolve({ kind: "exceeded" }) : job.reject(lost("the schema worker failed", error)),
      );
    });
    started.on("exit", () => lose(started, (job) => job.reject(lost("the schema worker ended"))));
    arm(START_TIMEOUT_MS);
    return started;
  }

  function arm(ms: number): void {
    clearTimeout(timer);
    const isStart = !isReady;
    timer = setTimeout(() => {
      if (!worker) return;
      lose(worker, (job) =>
        isStart ? job.reject(lost("the schema worker does not start")) : job.resolve({ kind: "exceeded" }),
      );
    }, ms);
  }

  /** A worker that is gone or must go: its job is answered, a worker that never started takes a job with it. */
  function lose(which: Worker, answer: (job: Job) => void): void {
    if (which !== worker) return;
    worker = undefined;
    if (!isReady) current ??= queue.shift();
    isReady = false;
    void which.terminate();
    settle(answer);
  }

  function settle(answer: (job: Job) => void): void {
    clearTimeout(timer);
    const job = current;
    current = undefined;
    worker?.unref();
    if (job) answer(job);
    next();
  }

  return {
    run: (request) =>
      new Promise((resolve, reject) => {
        if (isClosed) return reject(lost("the schema compiler is closed"));
        if (queue.length >= options.maxQueued) return reject(lost("too many schemas wait"));
        queue.push({ request, resolve, reject });
        next();
      }),
    [Symbol.asyncDispose]: async () => {
      isClosed = true;
      clearTimeout(timer);
      const ended = worker;
      worker = undefined;
      for (const job of [current, ...queue.splice(0)]) job?.reject(lost("the schema compiler is closed"));
      current = undefined;
      await ended?.terminate();
    },
  };
}

const lost = (message: string, cause?: unknown): UnavailableError => new UnavailableError(message, { cause });
