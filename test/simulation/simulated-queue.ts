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
  /** The start under way; undefined: it waits. */
  held: symbol | undefined;
}

/** How long the job of a worker that died is kept from others. */
const LOCK_MS = 15_000;

/**
 * A queue of jobs as `openJobQueue` promises it, on the server and by its time: of each due job one worker is told, and another where
 * that one does not say in time that it is over.
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

  /** The queue as one worker reaches it. */
  seenBy(process: Process, link: Link): PollQueue {
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

  /** Hands out what is due by now. To be called now and then. */
  handOut(): void {
    for (const job of this.#jobs.values()) {
      if (job.held !== undefined || job.dueMs > this.#server.timeMs()) continue;
      const able = [...this.#workers].filter(([{ isDead, isPaused }]) => !isDead && !isPaused);
      if (able.length > 0) this.#start(job, ...this.#world.chance.pick(able));
    }
  }

  #schedule(id: string, plan: JobPlan, data: PollJob): void {
    this.#schedules.set(id, { plan, data });
    const there = this.#jobs.get(`by.${id}`);
    if (there?.held !== undefined) return;
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
    const there = this.#jobs.get(id);
    const dueMs = this.#server.timeMs() + delayMs;
    if (there?.held !== undefined) return false;
    if (there === undefined || isUrgent) this.#put({ id, data, dueMs, scheduleId: undefined });
    else there.dueMs = Math.min(there.dueMs, dueMs);
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
    const job: Job<PollJob> = { id, data, dueAtMs, starts, createdAtMs, scheduleId };
    const isHeld = (): boolean => this.#jobs.get(id) === stored && stored.held === held;
    this.#world.in(LOCK_MS, undefined, () => {
      within(process, () => lost.abort());
      if (!isHeld()) return;
      stored.held = undefined;
      // It waits for a worker, and for no time any more, wherever the clock is by now.
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
      // Where it cannot be told, the job comes again.
      await worker.link.request(end).catch(() => {});
    };
    this.#world.in(this.#world.chance.between(0, 50), process, () => void work());
  }
}
