import { LRUCache } from "lru-cache";
import type { Job, JobHandler } from "../../../bus/jobs/job-worker.ts";
import type { SlotReservation } from "../../../bus/limits/slots.ts";
import { channelFacts } from "../../../event/channel.ts";
import { UnavailableError } from "../../../lib/errors.ts";
import { upToEntries } from "../../../lib/up-to-entries.ts";
import { type PolledOnce, pollOnce } from "./poll-run.ts";
import { addPoll, addTurn, type PollJob, type PollsContext, type PollTarget } from "./poll-target.ts";
import { planFrom } from "./poll-timing.ts";

export interface PollJobs {
  readonly handle: JobHandler<PollJob>;
  /** Aborts the poll of a channel on this worker. If the channel must still be polled, another poll starts soon. */
  readonly end: (channel: number) => void;
  /**
   * Makes the next poll of a channel ignore the wait after earlier failures, because a person changed the channel. The effect ends after a
   * few seconds.
   */
  readonly skipBackoff: (channel: number) => void;
}

/** Delay of a job whose channel this worker does not know. The channel may be new, and changes reach all workers within two seconds. */
const UNKNOWN_WAIT_MS = 2_000;
/**
 * Interval at which a job checks whether a concurrency limit allows its poll. Normally the worker that ends a poll wakes the job, but that
 * worker may have died.
 */
const QUEUE_WAIT_MS = 30_000;
/** Delay of a job whose source is already being polled. The delay doubles each time the job finds the source busy. */
const BUSY_WAIT_MS = 1_000;
const MAX_BUSY_WAIT_MS = 4_000;
/** Delay of a job during an outage of Redis or the database. The delay doubles each time the job fails again. */
const OUTAGE_WAIT_MS = 2_000;
const MAX_OUTAGE_WAIT_MS = 60_000;
/** How long a call of `skipBackoff` has an effect, in ms. It must be longer than the delay of a requested poll. */
const SKIP_BACKOFF_MS = 10_000;
const MAX_SKIPS = 10_000;
/** Minimum delay before an aborted poll starts again. */
const ENDED_WAIT_MS = 1_000;

type PollOutcome = PolledOnce["result"] | "unwanted" | "busy" | "limited" | "unavailable";

/** Outcomes without a complete poll. A wake with such an outcome still needs its poll. */
const NOT_POLLED: ReadonlySet<PollOutcome> = new Set([
  "unwanted",
  "busy",
  "limited",
  "unavailable",
  "early",
  "ended",
]);

/** Result of a job. `againAtMs` is the time of an additional poll, outside the schedule. */
interface Handled {
  readonly result: PollOutcome;
  readonly againAtMs?: number | undefined;
}

/** Creates the handler of poll jobs. Each source has at most one job outside its schedule, so that waiting jobs cannot accumulate. */
export function createPollJobs(deps: PollsContext): PollJobs {
  const { queue, slots, targets, targetsByWake, clock, log, metrics, random } = deps;
  const inFlight = new Map<number, AbortController>();
  /** Channels whose wait after failures is skipped. */
  const skipsBackoff = new LRUCache<number, true>({ ...upToEntries(MAX_SKIPS), ttl: SKIP_BACKOFF_MS });
  let failing = false;

  const findTarget = (data: PollJob): PollTarget | undefined =>
    "wake" in data ? targetsByWake.get(data.wake) : targets.get(data.channel);

  /** Returns the log fields of a job's channel. A channel that is no longer polled has only its name in the job. */
  function factsOf(data: PollJob): Readonly<Record<string, unknown>> {
    const target = findTarget(data);
    return target === undefined ? { ...data } : channelFacts(target.source.identity);
  }

  async function handle(job: Job<PollJob>, signal: AbortSignal): Promise<Handled> {
    const { data } = job;
    const target = findTarget(data);
    if (target === undefined || (job.scheduleId !== undefined && job.scheduleId !== target.scheduleId)) {
      if (job.starts === 1) return { result: "unwanted", againAtMs: clock() + UNKNOWN_WAIT_MS };
      if (job.scheduleId !== undefined) await queue.unschedule(job.scheduleId);
      return { result: "unwanted" };
    }
    const channel = target.source.identity.number;
    const { name, sinceMs } =
      "wake" in data
        ? { name: data.wake, sinceMs: undefined }
        : { name: String(channel), sinceMs: data.sinceMs };
    const slotRequest = await slots.take({
      name,
      // Only a job outside the schedule can wait for a concurrency limit. Its wait began when it was created.
      sinceMs: sinceMs ?? (job.scheduleId === undefined ? job.createdAtMs : clock()),
      semaphores: target.places,
    });
    await notifyReserved(slotRequest.reservations);
    if (slotRequest.kind === "full") {
      if (!slotRequest.semaphore.canQueue) return { result: "busy", againAtMs: afterBusyMs(job) };
      return { result: "limited", againAtMs: clock() + QUEUE_WAIT_MS * (0.5 + random()) };
    }
    const skipBackoff = skipsBackoff.has(channel);
    skipsBackoff.delete(channel);
    const ending = new AbortController();
    inFlight.set(channel, ending);
    const lagMs = Math.max(clock() - job.dueAtMs, 0);
    if (job.scheduleId !== undefined) metrics.pollLagSeconds.observe(lagMs / 1_000);
    try {
      const signals = [signal, ending.signal, slotRequest.slot.lost];
      const onWakeStarts = "wake" in data ? job.stopWaiting : undefined;
      const options = { signal: AbortSignal.any(signals), skipBackoff, lagMs, onWakeStarts };
      const polled = await pollOnce(deps, target, options);
      if (polled.dueAtMs !== undefined)
        await queue.schedule(target.scheduleId, planFrom(target.plan, polled.dueAtMs), { channel });
      if (polled.result !== "ended" || !targets.has(channel)) return polled;
      // When this worker shuts down, another worker can continue immediately.
      return { ...polled, againAtMs: clock() + (signal.aborted ? 0 : ENDED_WAIT_MS) };
    } finally {
      if (inFlight.get(channel) === ending) inFlight.delete(channel);
      await slotRequest.slot.release().then(notifyReserved, (error: unknown) => {
        log.debug(
          { event: "poll.slot_not_released", err: error, ...factsOf(data) },
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
  function afterBusyMs({ data, scheduleId, starts }: Job<PollJob>): number | undefined {
    if (scheduleId !== undefined) return undefined;
    if ("wake" in data) return clock() + BUSY_WAIT_MS;
    return clock() + doubled(BUSY_WAIT_MS, starts, MAX_BUSY_WAIT_MS);
  }

  async function notifyReserved(reservations: readonly SlotReservation[]): Promise<void> {
    for (const turn of reservations) {
      await addTurn(queue, turn).catch((error: unknown) => {
        log.debug(
          { event: "poll.turn_not_added", err: error, turn: turn.name },
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
      const facts = factsOf(job.data);
      if (!(error instanceof UnavailableError))
        log.error({ event: "poll.failed", err: error, ...facts }, "could not start a poll");
      else if (!failing && !signal.aborted)
        log.warn(
          { event: "poll.delayed", err: error, ...facts },
          "polls are delayed until Redis and the database are available",
        );
      failing = true;
      const waitMs = doubled(OUTAGE_WAIT_MS, job.starts, MAX_OUTAGE_WAIT_MS);
      return { result: "unavailable", againAtMs: clock() + waitMs * (0.5 + random()) };
    }
  }

  function ignoreWake(data: PollJob, kind: string): void {
    metrics.wakes.add(kind, "ignored");
    log.debug(
      { event: "wake.ignored", ...factsOf(data) },
      "a wake was ignored, because its channel is not polled",
    );
  }

  return {
    async handle(job, { signal }) {
      const { data } = job;
      const { result, againAtMs } = await handleSafely(job, signal);
      const identity = findTarget(data)?.source.identity;
      const kind = identity?.kind ?? "unknown";
      metrics.polls.add(kind, result);
      if (againAtMs === undefined) {
        if ("wake" in data && (result === "unwanted" || result === "none")) ignoreWake(data, kind);
        return undefined;
      }
      const delayMs = Math.max(againAtMs - clock(), 0);
      if (postponesItself(job, result)) return { postponeMs: delayMs };
      const channel = "wake" in data ? identity?.number : data.channel;
      if (channel === undefined) return undefined;
      await addPoll(queue, channel, delayMs).catch((error: unknown) => {
        log.debug({ event: "poll.not_added", err: error, ...factsOf(data) }, "could not add an extra poll");
      });
      return undefined;
    },
    end: (channel) => inFlight.get(channel)?.abort(),
    skipBackoff: (channel) => void skipsBackoff.set(channel, true),
  };
}

/**
 * Returns whether a job runs again itself, instead of adding an extra poll. A scheduled job does so only if its channel is unknown, because
 * an extra job would poll the channel twice. A wake does so until its poll has run.
 */
function postponesItself({ data, scheduleId }: Job<PollJob>, result: PollOutcome): boolean {
  if (scheduleId !== undefined) return result === "unwanted";
  return !("wake" in data) || NOT_POLLED.has(result);
}

const doubled = (firstMs: number, starts: number, mostMs: number): number =>
  Math.min(firstMs * 2 ** Math.min(starts - 1, 10), mostMs);
