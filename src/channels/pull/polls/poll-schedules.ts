import { nextTimeMs } from "../../../bus/jobs/job-plan.ts";
import { channelFacts } from "../../../event/channel.ts";
import type { Backoff } from "../../../lib/backoff.ts";
import { UnavailableError } from "../../../lib/errors.ts";
import { startLoop } from "../../../lib/loop.ts";
import { mapBounded } from "../../../lib/map-bounded.ts";
import { addPoll, type PollsContext, type PollTarget, removePoll } from "./poll-target.ts";
import { latestDueMs, planFrom } from "./poll-timing.ts";

/**
 * Keeps the schedules of all polled sources in Redis up to date. Disposal leaves the schedules in Redis, because other workers use them.
 */
export interface PollSchedules extends AsyncDisposable {
  /** Starts an update of the schedules. Must be called after the list of polled sources has changed. */
  readonly wake: () => void;
  /**
   * Requests an additional poll of a channel, outside its schedule. Requests from several workers for the same change cause only one poll.
   */
  readonly pollSoon: (channel: number) => void;
}

const CALLS_AT_ONCE = 16;
const RETRY_MS = 1_000;
const RETRY: Backoff = { initialMs: RETRY_MS, maxMs: RETRY_MS, factor: 1, jitter: 0 };
/**
 * Delay of a new source's first poll. Intervals are counted from the first poll, so that sources that start together do not stay
 * synchronized.
 */
const FIRST_POLL_MS = 100;
const SPACING_MS = 5;
/** Maximum difference of two due times that two workers computed for the same wait requested by a server. */
const SAME_TIME_MS = 5_000;
/** Delay of a requested poll, in ms. It is longer than a change takes to reach all workers. */
const SOON_MS = 1_500;

/**
 * Keeps exactly one schedule per source in the job queue. Every worker does this for all sources. A schedule's id includes a hash of its
 * plan, so an existing schedule needs no write, and setting it twice is harmless.
 *
 * A periodic check restores schedules that were lost when Redis was flushed. It removes an unknown schedule only when it finds it a second
 * time, because another worker may know a newer config.
 */
export function startPollSchedules(deps: PollsContext): PollSchedules {
  const { queue, targets, clock, log, random, reconcileEveryMs } = deps;
  /** Ids of the schedules that exist in Redis, by channel. */
  const known = new Map<number, string>();
  const pendingPolls = new Set<number>();
  /** Original due times of schedules that `moveUp` has moved to an earlier time. */
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
   * Corrects a due time that is later than the schedule allows, which usually comes from a wrong clock. If the same due time returns, the
   * server requested it, and it stays.
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

  /** Runs `act` for every item, even if Redis rejects some of them. Throws the first error at the end. */
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
      // The schedule must start after the first poll, because a scheduled poll at the same time would be a duplicate.
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
