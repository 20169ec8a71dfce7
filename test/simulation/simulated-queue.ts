import { type JobPlan, nextTimeMs } from "../../src/bus/jobs/job-plan.ts";
import type { NewJob } from "../../src/bus/jobs/job-queue.ts";
import type { Job, JobHandler } from "../../src/bus/jobs/job-worker.ts";
import type { PollJob, PollQueue } from "../../src/channels/pull/polls/poll-target.ts";
import type { Link } from "./link.ts";
import type { VirtualRedis } from "./virtual-redis.ts";
import { within } from "./virtual-time.ts";
import type { Process, World } from "./world.ts";

interface Stored {
  readonly id: string;
  readonly data: PollJob;
  readonly createdAtMs: number;
  readonly scheduleId: string | undefined;
  dueMs: number;
  starts: number;
  /** Token of the current run; `undefined` while the job waits. */
  held: symbol | undefined;
}

/** Time after which the job of a dead worker is given to another. */
const LOCK_MS = 15_000;

/**
 * Simulates a job queue with the guarantees of `openJobQueue`, by the clock of the server. Each due job is given to one worker, and to
 * another one if the first does not report its end in time.
 */
export class SimulatedQueue {
  readonly #world: World;
  readonly #server: VirtualRedis;
  readonly #jobs = new Map<string, Stored>();
  readonly #schedules = new Map<string, { readonly plan: JobPlan; readonly data: PollJob }>();
  readonly #workers = new Map<Process, { readonly link: Link; readonly handler: JobHandler<PollJob> }>();

  constructor(server: VirtualRedis) {
    this.#server = server;
    this.#world = server.world;
  }

  /** Returns the queue of one worker, reached over its link. */
  connect(process: Process, link: Link): PollQueue {
    const ask = <T>(act: () => T): Promise<T> => link.request(async () => act()) as Promise<T>;
    return {
      schedule: (id, plan, data) => ask(() => this.#schedule(id, plan, data)),
      unschedule: (id) =>
        ask(() => {
          this.#schedules.delete(id);
          if (this.#jobs.get(`by.${id}`)?.held === undefined) this.#jobs.delete(`by.${id}`);
        }),
      isScheduled: (id) => ask(() => this.#schedules.has(id)),
      listScheduled: async function* (this: SimulatedQueue) {
        yield await ask(() =>
          [...this.#schedules.keys()].map((id) => ({ id, nextAtMs: this.#jobs.get(`by.${id}`)?.dueMs ?? 0 })),
        );
      }.bind(this),
      add: (job) => ask(() => this.#add(job)),
      bringForward: async () => false,
      remove: (id) =>
        ask(() => {
          if (this.#jobs.get(id)?.held === undefined) this.#jobs.delete(id);
        }),
      work: (handler) => {
        this.#workers.set(process, { link, handler });
        return { [Symbol.asyncDispose]: async () => void this.#workers.delete(process) };
      },
      async [Symbol.asyncDispose]() {},
    };
  }

  /** Starts due jobs. Must be called periodically. */
  dispatchDueJobs(): void {
    for (const job of this.#jobs.values()) {
      if (job.held !== undefined || job.dueMs > this.#server.timeMs()) continue;
      const able = [...this.#workers].filter(([{ isDead, isPaused }]) => !isDead && !isPaused);
      if (able.length > 0) this.#start(job, ...this.#world.chance.pick(able));
    }
  }

  #schedule(id: string, plan: JobPlan, data: PollJob): void {
    this.#schedules.set(id, { plan, data });
    const existing = this.#jobs.get(`by.${id}`);
    if (existing?.held !== undefined) return;
    this.#jobs.delete(`by.${id}`);
    this.#addNext(id);
  }

  #addNext(id: string): void {
    const schedule = this.#schedules.get(id);
    const dueMs = schedule && nextTimeMs(schedule.plan, this.#server.timeMs());
    if (schedule && dueMs !== undefined)
      this.#put({ id: `by.${id}`, data: schedule.data, dueMs, scheduleId: id });
  }

  #add({ id = "", data, delayMs = 0, isUrgent = false }: NewJob<PollJob>): boolean {
    const existing = this.#jobs.get(id);
    const dueMs = this.#server.timeMs() + delayMs;
    if (existing?.held !== undefined) return false;
    if (existing === undefined || isUrgent) this.#put({ id, data, dueMs, scheduleId: undefined });
    else existing.dueMs = Math.min(existing.dueMs, dueMs);
    return true;
  }

  #put(job: Pick<Stored, "id" | "data" | "dueMs" | "scheduleId">): void {
    this.#jobs.set(job.id, { ...job, createdAtMs: this.#server.timeMs(), starts: 0, held: undefined });
  }

  #start(
    stored: Stored,
    process: Process,
    worker: { readonly link: Link; readonly handler: JobHandler<PollJob> },
  ): void {
    const held = Symbol(stored.id);
    const lost = new AbortController();
    stored.held = held;
    stored.starts++;
    const { id, data, dueMs: dueAtMs, starts, createdAtMs, scheduleId } = stored;
    const stopWaiting = async () => {};
    const job: Job<PollJob> = { id, data, dueAtMs, starts, createdAtMs, scheduleId, stopWaiting };
    const isHeld = (): boolean => this.#jobs.get(id) === stored && stored.held === held;
    this.#world.in(LOCK_MS, undefined, () => {
      within(process, () => lost.abort());
      if (!isHeld()) return;
      stored.held = undefined;
      // The job is due now, even if the clock was set back.
      stored.dueMs = Math.min(stored.dueMs, this.#server.timeMs());
    });
    const work = async (): Promise<void> => {
      const outcome = await worker.handler(job, { signal: lost.signal });
      const end = async (): Promise<void> => {
        if (!isHeld()) return;
        stored.held = undefined;
        if (outcome !== undefined) stored.dueMs = this.#server.timeMs() + outcome.postponeMs;
        else {
          this.#jobs.delete(id);
          if (scheduleId !== undefined) this.#addNext(scheduleId);
        }
      };
      // If the end cannot be reported, the job runs again.
      await worker.link.request(end).catch(() => {});
    };
    this.#world.in(this.#world.chance.between(0, 50), process, () => void work());
  }
}
