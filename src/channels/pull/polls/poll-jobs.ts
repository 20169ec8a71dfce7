import type { Job, JobHandler } from "../../../bus/jobs/job-worker.ts";
import type { SlotReservation } from "../../../bus/limits/slots.ts";
import { channelFacts } from "../../../event/channel.ts";
import { UnavailableError } from "../../../lib/errors.ts";
import { type PolledOnce, pollOnce } from "./poll-run.ts";
import { addPoll, addTurn, type PollJob, type PollsContext } from "./poll-target.ts";
import { planFrom } from "./poll-timing.ts";

export interface PollJobs {
  readonly handle: JobHandler<PollJob>;
  /** Aborts the channel's poll on this worker. If the channel should still be polled, another poll starts soon. */
  readonly end: (channel: number) => void;
  /**
   * Makes the channel's next poll ignore the wait after earlier failures, because a person changed the channel. The effect ends after a few
   * seconds.
   */
  readonly skipBackoff: (channel: number) => void;
}

/**
 * How long a job waits if this worker does not know its channel. The channel may be new, and changes reach all workers within two seconds.
 */
const UNKNOWN_WAIT_MS = 2_000;
/**
 * Interval at which a job that waits for a limit slot checks again. Normally, the worker that releases a slot wakes the job, but that
 * worker may have died. The interval is long because thousands of jobs may wait.
 */
const QUEUE_WAIT_MS = 30_000;
/**
 * How long an extra poll waits while its source is already being polled. The time doubles with each start of the job. A poll that is
 * requested meanwhile may have to wait equally long.
 */
const BUSY_WAIT_MS = 1_000;
const MAX_BUSY_WAIT_MS = 4_000;
/** How long a job waits during an outage of Redis or the database. The time doubles with each start of the job. */
const OUTAGE_WAIT_MS = 2_000;
const MAX_OUTAGE_WAIT_MS = 60_000;
/**
 * How long a call of `skipBackoff` has an effect. It must be longer than the delay of a requested poll. After this time, another worker may
 * already have run that poll.
 */
const SKIP_BACKOFF_MS = 10_000;
/** Minimum wait before an aborted poll is started again. */
const ENDED_WAIT_MS = 1_000;

type PollOutcome = PolledOnce["result"] | "unwanted" | "busy" | "limited" | "unavailable";

/** `againAtMs` is the time of an extra poll, outside the schedule. */
interface Handled {
  readonly result: PollOutcome;
  readonly againAtMs?: number | undefined;
}

/** Creates the handler of poll jobs. A source has at most one extra job, so jobs do not pile up behind a limit. */
export function createPollJobs(deps: PollsContext): PollJobs {
  const { queue, slots, targets, clock, log, metrics, random } = deps;
  const inFlight = new Map<number, AbortController>();
  /** Time until which each channel's failure backoff is skipped. The times are in ascending order. */
  const skipBackoffUntil = new Map<number, number>();
  let failing = false;

  /** If the channel is no longer polled, only its number is known. */
  function factsOf(channel: number): Readonly<Record<string, unknown>> {
    const target = targets.get(channel);
    return target === undefined ? { channel } : channelFacts(target.source.identity);
  }

  async function handle(job: Job<PollJob>, signal: AbortSignal): Promise<Handled> {
    const { channel } = job.data;
    const target = targets.get(channel);
    if (target === undefined || (job.scheduleId !== undefined && job.scheduleId !== target.scheduleId)) {
      if (job.starts === 1) return { result: "unwanted", againAtMs: clock() + UNKNOWN_WAIT_MS };
      if (job.scheduleId !== undefined) await queue.unschedule(job.scheduleId);
      return { result: "unwanted" };
    }
    const slotRequest = await slots.take({
      name: String(channel),
      // Only an extra job can wait for a limit slot. Its wait began when the job was created.
      sinceMs: job.data.sinceMs ?? (job.scheduleId === undefined ? job.createdAtMs : clock()),
      semaphores: target.places,
    });
    await notifyReserved(slotRequest.reservations);
    if (slotRequest.kind === "full") {
      if (!slotRequest.semaphore.canQueue) return { result: "busy", againAtMs: afterBusyMs(job) };
      return { result: "limited", againAtMs: clock() + QUEUE_WAIT_MS * (0.5 + random()) };
    }
    const skipBackoff = (skipBackoffUntil.get(channel) ?? 0) > clock();
    skipBackoffUntil.delete(channel);
    const ending = new AbortController();
    inFlight.set(channel, ending);
    const lagMs = Math.max(clock() - job.dueAtMs, 0);
    if (job.scheduleId !== undefined) metrics.pollLagSeconds.observe(lagMs / 1_000);
    try {
      const signals = [signal, ending.signal, slotRequest.slot.lost];
      const polled = await pollOnce(deps, target, { signal: AbortSignal.any(signals), skipBackoff, lagMs });
      if (polled.dueAtMs !== undefined)
        await queue.schedule(target.scheduleId, planFrom(target.plan, polled.dueAtMs), { channel });
      if (polled.result !== "ended" || !targets.has(channel)) return polled;
      // If this worker is shutting down, another worker can continue at once.
      return { ...polled, againAtMs: clock() + (signal.aborted ? 0 : ENDED_WAIT_MS) };
    } finally {
      if (inFlight.get(channel) === ending) inFlight.delete(channel);
      await slotRequest.slot.release().then(notifyReserved, (error: unknown) => {
        log.debug(
          { event: "poll.slot_not_released", err: error, ...factsOf(channel) },
          "could not release a poll's limit slot; the slot will expire",
        );
      });
    }
  }

  /**
   * If the job of an extra poll finds its source busy, returns the time of the next attempt. The job is kept, because the running poll may
   * request an extra poll too, and no second job can be added while this one exists. Returns `undefined` for a scheduled poll, which is
   * skipped.
   */
  function afterBusyMs({ scheduleId, starts }: Job<PollJob>): number | undefined {
    if (scheduleId !== undefined) return undefined;
    return clock() + doubled(BUSY_WAIT_MS, starts, MAX_BUSY_WAIT_MS);
  }

  async function notifyReserved(reservations: readonly SlotReservation[]): Promise<void> {
    for (const turn of reservations) {
      await addTurn(queue, turn).catch((error: unknown) => {
        log.debug(
          { event: "poll.turn_not_added", err: error, ...factsOf(Number(turn.name)) },
          "could not start the next poll that waits for a limit slot",
        );
      });
    }
  }

  async function handleSafely(job: Job<PollJob>, signal: AbortSignal): Promise<Handled> {
    try {
      const handled = await handle(job, signal);
      failing = false;
      return handled;
    } catch (error) {
      const { channel } = job.data;
      if (!(error instanceof UnavailableError))
        log.error({ event: "poll.failed", err: error, ...factsOf(channel) }, "could not start a poll");
      else if (!failing && !signal.aborted)
        log.warn(
          { event: "poll.delayed", err: error, ...factsOf(channel) },
          "polls are delayed until Redis and the database are available",
        );
      failing = true;
      const waitMs = doubled(OUTAGE_WAIT_MS, job.starts, MAX_OUTAGE_WAIT_MS);
      return { result: "unavailable", againAtMs: clock() + waitMs * (0.5 + random()) };
    }
  }

  return {
    async handle(job, { signal }) {
      const { result, againAtMs } = await handleSafely(job, signal);
      metrics.polls.add(targets.get(job.data.channel)?.source.identity.kind ?? "unknown", result);
      if (againAtMs === undefined) return undefined;
      const delayMs = Math.max(againAtMs - clock(), 0);
      // For an unknown channel, the scheduled job itself is postponed. An extra job in addition would poll the channel twice.
      if (job.scheduleId === undefined || result === "unwanted") return { postponeMs: delayMs };
      await addPoll(queue, job.data.channel, delayMs).catch((error: unknown) => {
        log.debug(
          { event: "poll.not_added", err: error, ...factsOf(job.data.channel) },
          "could not add an extra poll",
        );
      });
      return undefined;
    },
    end: (channel) => inFlight.get(channel)?.abort(),
    skipBackoff(channel) {
      for (const [old, untilMs] of skipBackoffUntil) {
        if (untilMs > clock()) break;
        skipBackoffUntil.delete(old);
      }
      skipBackoffUntil.delete(channel);
      skipBackoffUntil.set(channel, clock() + SKIP_BACKOFF_MS);
    },
  };
}

const doubled = (firstMs: number, starts: number, mostMs: number): number =>
  Math.min(firstMs * 2 ** Math.min(starts - 1, 10), mostMs);
