import { nextTimeMs } from "../../../bus/jobs/job-plan.ts";
import { channelFacts } from "../../../event/channel.ts";
import type { Backoff } from "../../../lib/backoff.ts";
import { UnavailableError } from "../../../lib/errors.ts";
import { startLoop } from "../../../lib/loop.ts";
import { mapBounded } from "../../../lib/map-bounded.ts";
import { addPoll, type PollsContext, type PollTarget, removePoll } from "./poll-target.ts";
import { latestDueMs, planFrom } from "./poll-timing.ts";

/** Keeps the schedules of all polled sources up to date in Redis. Disposal does not remove them, because other workers still use them. */
export interface PollSchedules extends AsyncDisposable {
  /** Must be called when the sources to poll have changed. */
  readonly wake: () => void;
  /**
   * Requests an extra poll of a channel, outside its schedule. If several workers request it for the same change, the channel is polled
   * once.
   */
  readonly pollSoon: (channel: number) => void;
}

const CALLS_AT_ONCE = 16;
const RETRY_MS = 1_000;
const RETRY: Backoff = { initialMs: RETRY_MS, maxMs: RETRY_MS, factor: 1, jitter: 0 };
/**
 * Delay of a new source's first poll, which does not wait for the schedule. Each interval is then counted from this first poll, so that
 * sources that start together are spread out.
 */
const FIRST_POLL_MS = 100;
const SPACING_MS = 5;
/** If two due times differ by less than this, they result from the same requested wait, computed twice. */
const SAME_TIME_MS = 5_000;
/** Delay of a requested poll. It is longer than a change takes to reach all workers. */
const SOON_MS = 1_500;

/**
 * Keeps exactly one schedule per source in the job queue. Every worker does this for all sources. A schedule's id includes a hash of its
 * plan, so an existing schedule needs no write, and setting it twice is harmless.
 *
 * A periodic check restores schedules that were lost when Redis was flushed. It removes an unknown schedule only when it finds it a second
 * time, because another worker may know newer settings.
 */
export function startPollSchedules(deps: PollsContext): PollSchedules {
  const { queue, targets, clock, log, random, reconcileEveryMs } = deps;
  /** Ids of the schedules that are known to be in Redis, by channel. */
  const known = new Map<number, string>();
  const pendingPolls = new Set<number>();
  /** Original due times of the schedules that `moveUp` moved to an earlier time. */
  const movedUp = new Map<number, number>();
  let unknownSchedules = new Set<string>();
  let reconcileAtMs = 0;

  async function reconcile(): Promise<void> {
    const stored = new Map<string, number>();
    for await (const page of queue.listScheduled())
      for (const { id, nextAtMs } of page) stored.set(id, nextAtMs);
    const before = unknownSchedules;
    unknownSchedules = new Set();
    for (const [channel, target] of targets) {
      const { scheduleId } = target;
      const nextAtMs = stored.get(scheduleId);
      if (nextAtMs !== undefined) known.set(channel, scheduleId);
      else if (known.get(channel) === scheduleId) known.delete(channel);
      stored.delete(scheduleId);
      if (nextAtMs !== undefined && nextAtMs > latestDueMs(target.plan, clock()))
        await moveUp(target, nextAtMs);
      else movedUp.delete(channel);
    }
    for (const id of known.values()) stored.delete(id);
    for (const id of stored.keys()) {
      if (before.has(id)) await queue.unschedule(id);
      else unknownSchedules.add(id);
    }
    reconcileAtMs = performance.now() + reconcileEveryMs * (0.75 + random() / 2);
  }

  /**
   * Moves a schedule to an earlier time if its due time is later than the plan and any backoff allow. Such a time usually comes from a
   * worker with a wrong clock. If the same due time appears again, the server requested that wait, and the time stays.
   */
  async function moveUp({ plan, scheduleId, source }: PollTarget, nextAtMs: number): Promise<void> {
    const { identity } = source;
    const isBelieved = Math.abs(nextAtMs - (movedUp.get(identity.number) ?? 0)) < SAME_TIME_MS;
    if (isBelieved) return;
    movedUp.set(identity.number, nextAtMs);
    await queue.schedule(scheduleId, planFrom(plan, clock() + FIRST_POLL_MS), { channel: identity.number });
    const aheadSeconds = Math.round((nextAtMs - clock()) / 1_000);
    log.warn(
      { event: "poll.moved_up", ...channelFacts(identity), aheadSeconds },
      "the next poll was too far in the future and was moved to an earlier time",
    );
  }

  /** If Redis rejects an item, the remaining items still run. The first error is thrown at the end. */
  async function each<T>(items: readonly T[], act: (item: T, index: number) => Promise<void>): Promise<void> {
    const refusals: unknown[] = [];
    await mapBounded(items, CALLS_AT_ONCE, async (item, i) => {
      loop.signal.throwIfAborted();
      await act(item, i).catch((error: unknown) => {
        if (error instanceof UnavailableError) throw error;
        refusals.push(error);
      });
    });
    if (refusals.length > 0) throw refusals[0];
  }

  async function remove([channel, id]: readonly [number, string]): Promise<void> {
    await queue.unschedule(id);
    if (!targets.has(channel)) await removePoll(queue, channel);
    known.delete(channel);
  }

  async function set({ source, scheduleId, plan, spacing }: PollTarget, index: number): Promise<void> {
    const channel = source.identity.number;
    if (!(await queue.isScheduled(scheduleId))) {
      const firstMs = Math.floor(clock()) + FIRST_POLL_MS + SPACING_MS * index;
      // The interval is counted from the first poll, so the schedule must start after that poll. Otherwise both would poll at the same
      // time.
      const [fromMs, afterMs] = spacing === undefined ? [0, 0] : [firstMs + spacing.intervalMs, firstMs];
      await queue.schedule(scheduleId, planFrom(plan, fromMs), { channel }, afterMs);
      const plannedMs = nextTimeMs(plan, clock()) ?? Number.POSITIVE_INFINITY;
      if (spacing !== undefined || plannedMs > firstMs)
        await addPoll(queue, channel, Math.max(firstMs - clock(), 0));
    }
    known.set(channel, scheduleId);
  }

  async function settle(): Promise<void> {
    await each(
      [...known].filter(([channel, id]) => targets.get(channel)?.scheduleId !== id),
      remove,
    );
    await each(
      [...targets.values()].filter(({ source }) => !known.has(source.identity.number)),
      set,
    );
    await each([...pendingPolls], async (channel, i) => {
      const isDone = !targets.has(channel) || (await addPoll(queue, channel, SOON_MS + SPACING_MS * i));
      if (isDone) pendingPolls.delete(channel);
    });
  }

  const loop = startLoop({
    async step() {
      if (performance.now() >= reconcileAtMs) await reconcile();
      await settle();
    },
    everyMs: () => (pendingPolls.size > 0 ? RETRY_MS : Math.max(0, reconcileAtMs - performance.now())),
    retry: RETRY,
    random,
    onFailing: (err) => log.warn({ event: "poll_schedules.failing", err }, "could not update poll schedules"),
    onRecovered: () => log.info({ event: "poll_schedules.recovered" }, "poll schedules are updated again"),
  });
  return {
    wake: loop.wake,
    pollSoon(channel) {
      pendingPolls.add(channel);
      loop.wake();
    },
    [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose](),
  };
}
