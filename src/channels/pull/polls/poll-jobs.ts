import type { Job, JobHandler } from "../../../bus/jobs/job-worker.ts";
import type { SlotReservation } from "../../../bus/limits/slots.ts";
import { channelFacts } from "../../../event/channel.ts";
import { UnavailableError } from "../../../lib/errors.ts";
import { type PolledOnce, pollOnce } from "./poll-run.ts";
import { addPoll, addTurn, type PollJob, type PollsContext } from "./poll-target.ts";
import { planFrom } from "./poll-timing.ts";

export interface PollJobs {
  readonly handle: JobHandler<PollJob>;
  /** Ends the poll of a channel that is under way here; if the channel is still to be polled, another follows soon. */
  readonly end: (channel: number) => void;
  /** A person has changed something: the channel's next poll, if it comes soon, does not wait for what failed before. */
  readonly skipBackoff: (channel: number) => void;
}

/** Changes reach all workers within two seconds: what is not known here may be new. */
const UNKNOWN_WAIT_MS = 2_000;
/** A job in line looks again by itself: the worker that should tell it may have died. Thousands may stand there. */
const QUEUE_WAIT_MS = 30_000;
/**
 * A poll beside the plan that finds its source busy comes again: doubled for each time that it has begun, whatever it waited for. The
 * next poll that is asked for meanwhile may have to wait as long.
 */
const BUSY_WAIT_MS = 1_000;
const MAX_BUSY_WAIT_MS = 4_000;
/** During an outage it comes again, doubled likewise. */
const OUTAGE_WAIT_MS = 2_000;
const MAX_OUTAGE_WAIT_MS = 60_000;
/** Longer than the next poll of a source takes that should come soon; by then it may have been another worker's. */
const SKIP_BACKOFF_MS = 10_000;
/** A poll that was ended here is not begun again faster than this, whatever ends it. */
const ENDED_WAIT_MS = 1_000;

type PollOutcome = PolledOnce["result"] | "unwanted" | "busy" | "limited" | "unavailable";

/** The outcome of a job, and when its source should be polled beside its plan. */
interface Handled {
  readonly result: PollOutcome;
  readonly againAtMs?: number | undefined;
}

/**
 * Handles the jobs of polls. Nothing is decided by the job itself: what is polled, and whether, is looked up when
 * it runs. One job beside the plan at most waits for a source, so that no queue grows behind a limit.
 */
export function createPollJobs(deps: PollsContext): PollJobs {
  const { queue, slots, targets, clock, log, metrics, random } = deps;
  const inFlight = new Map<number, AbortController>();
  /** Until when, by channel; in the order of these times. */
  const skipBackoffUntil = new Map<number, number>();
  let failing = false;

  /** Of one that is not to be polled any more the number is all that is known here. */
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
      // A job that waits is the one beside the plan: it was made when its wait began.
      sinceMs: job.data.sinceMs ?? (job.scheduleId === undefined ? job.createdAtMs : clock()),
      semaphores: target.places,
    });
    await notifyTurns(slotRequest.turns);
    if (slotRequest.kind === "full") {
      if (!slotRequest.place.canQueue) return { result: "busy", againAtMs: afterBusyMs(job) };
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
      // Another worker goes on at once where this one stops.
      return { ...polled, againAtMs: clock() + (signal.aborted ? 0 : ENDED_WAIT_MS) };
    } finally {
      if (inFlight.get(channel) === ending) inFlight.delete(channel);
      await slotRequest.slot.release().then(notifyTurns, (error: unknown) => {
        log.debug(
          { event: "poll.slot_not_released", err: error, ...factsOf(channel) },
          "limit slot is left to run out",
        );
      });
    }
  }

  /**
   * Times of the plan are left out. The one beside it stays until it is begun: the poll that keeps the source busy may be about to ask
   * for another, and while this one is here that would be no second one.
   */
  function afterBusyMs({ scheduleId, starts }: Job<PollJob>): number | undefined {
    if (scheduleId !== undefined) return undefined;
    return clock() + doubled(BUSY_WAIT_MS, starts, MAX_BUSY_WAIT_MS);
  }

  async function notifyTurns(turns: readonly SlotReservation[]): Promise<void> {
    for (const turn of turns) {
      await addTurn(queue, turn).catch((error: unknown) => {
        log.debug(
          { event: "poll.turn_not_added", err: error, ...factsOf(Number(turn.name)) },
          "next poll in line could not be added",
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
        log.error({ event: "poll.failed", err: error, ...factsOf(channel) }, "poll could not begin");
      else if (!failing && !signal.aborted)
        log.warn(
          { event: "poll.delayed", err: error, ...factsOf(channel) },
          "polls wait until Redis and the database answer",
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
      // One by the plan that is not yet sure to be wanted keeps its place in the plan; else there would be two.
      if (job.scheduleId === undefined || result === "unwanted") return { postponeMs: delayMs };
      await addPoll(queue, job.data.channel, delayMs).catch((error: unknown) => {
        log.debug(
          { event: "poll.not_added", err: error, ...factsOf(job.data.channel) },
          "poll beside the plan could not be added",
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

/** The wait after the n-th start. */
const doubled = (firstMs: number, starts: number, mostMs: number): number =>
  Math.min(firstMs * 2 ** Math.min(starts - 1, 10), mostMs);
