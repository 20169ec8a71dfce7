import { nextTimeMs } from "../../../bus/jobs/job-plan.ts";
import { channelFacts } from "../../../event/channel.ts";
import type { Backoff } from "../../../lib/backoff.ts";
import { UnavailableError } from "../../../lib/errors.ts";
import { startLoop } from "../../../lib/loop.ts";
import { mapBounded } from "../../../lib/map-bounded.ts";
import { addPoll, type PollsContext, type PollTarget, removePoll } from "./poll-target.ts";
import { latestDueMs, planFrom } from "./poll-timing.ts";

/** Disposal leaves the schedules to the other workers. */
export interface PollSchedules extends AsyncDisposable {
  /** The targets have changed. */
  readonly wake: () => void;
  /** A target is to be polled beside its plan. Called on each worker of the same thing: one poll comes of it. */
  readonly pollSoon: (channel: number) => void;
}

const CALLS_AT_ONCE = 16;
const RETRY_MS = 1_000;
const RETRY: Backoff = { initialMs: RETRY_MS, maxMs: RETRY_MS, factor: 1, jitter: 0 };
/**
 * The first poll of a source that begins to run does not wait for its plan. Those of many that begin together follow each other, and
 * so do their intervals, which are counted each from its own first poll.
 */
const FIRST_POLL_MS = 100;
const SPACING_MS = 5;
/** Two times of one wait, computed twice. */
const SAME_TIME_MS = 5_000;
/** Longer than it takes until all workers are told of the same thing. */
const SOON_MS = 1_500;

/**
 * Keeps one schedule of each target in the queue, and none of others. Each worker does it for all targets, from what it knows: a
 * schedule's id names its plan, so that what is there need not be written again, and two that set the same do no harm. Now and
 * then all that is there is looked at: what an emptied Redis has lost is set again, and what nobody here knows of goes once it was
 * seen twice; before that, it may be another's who knows more.
 */
export function startPollSchedules(deps: PollsContext): PollSchedules {
  const { queue, targets, clock, log, random, reconcileEveryMs } = deps;
  /** The schedules that are there as far as it is known here, by channel number. */
  const known = new Map<number, string>();
  const pendingPolls = new Set<number>();
  /** When the sources were due that were pulled in last, by channel number. */
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
   * A source is due later than its plan and its failures explain: a clock was wrong when that was stored. It is asked soon, and left
   * alone again where its sender wanted that; the same time is believed then.
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
      "the next poll stood too far in the future; it is moved up",
    );
  }

  /** One that Redis refuses keeps the others from nothing; it is thrown in the end. */
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
      // An interval is counted from the first poll, and begins after it: a time of the plan in the same instant would be a second one.
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
    onFailing: (err) => log.warn({ event: "poll_schedules.failing", err }, "poll schedules cannot be set"),
    onRecovered: () => log.info({ event: "poll_schedules.recovered" }, "poll schedules are set again"),
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
