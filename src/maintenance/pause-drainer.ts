import { randomUUID } from "node:crypto";
import type { Pauses } from "../bus/groups/pauses.ts";
import type { QuarantineStore } from "../bus/quarantine/quarantine.ts";
import type { ChangeSubscriptions } from "../data/changes.ts";
import { endPause, listResumed, type ResumedChannel } from "../data/channels/channel-states.ts";
import type { Queryable } from "../data/database.ts";
import { claimLease, releaseLease } from "../data/leases.ts";
import { channelFacts } from "../event/channel.ts";
import type { CompiledChannel } from "../ingest/compile-channel.ts";
import type { DrainPaused } from "../ingest/drain-paused.ts";
import { startLoop } from "../lib/loop.ts";
import { mapBounded } from "../lib/map-bounded.ts";
import { inPages } from "../lib/pages.ts";
import type { Log } from "../log.ts";

export interface PauseDrainerDeps {
  readonly db: Queryable;
  readonly changes: ChangeSubscriptions;
  readonly quarantine: Pick<QuarantineStore, "list" | "find">;
  readonly pauses: Pauses;
  readonly drainPaused: DrainPaused;
  readonly findCompiledChannel: (channelNumber: number) => Promise<CompiledChannel | undefined>;
  readonly log: Log;
  readonly timing?: Partial<typeof TIMING>;
}

/**
 * Publishes deliveries that arrived while their channel was paused. Disposal waits for the page in flight and leaves the rest to other
 * gateways.
 */
export type PauseDrainer = AsyncDisposable;

const TIMING = {
  /** Interval at which resumed channels are searched for, in ms. A change to a channel starts a search immediately. */
  tickMs: 1_000,
  /** Lock duration of the gateway that publishes a channel's buffer, in ms. If it dies, another gateway continues after this time. */
  leaseMs: 15_000,
  /**
   * Time in ms for which the buffer must stay empty before the pause ends. Must exceed five seconds, because another worker may take that
   * long to buffer a delivery.
   */
  lingerMs: 15_000,
};
const CHANNELS_AT_ONCE = 4;
const PAGE = 100;
const FINDS_AT_ONCE = 16;

/**
 * Publishes the buffered deliveries of resumed channels in order. Each channel is processed by one gateway at a time, and another gateway
 * takes over if it dies.
 */
export function startPauseDrainer(deps: PauseDrainerDeps): PauseDrainer {
  const { db, quarantine, pauses, drainPaused, findCompiledChannel, log } = deps;
  const timing = { ...TIMING, ...deps.timing };
  const holder = randomUUID();
  const failing = new Set<number>();
  const inFlight = new Map<number, Promise<void>>();
  /** Resumed channels that wait, because `CHANNELS_AT_ONCE` other channels are being processed. */
  let waiting: ResumedChannel[] = [];
  let lastStarted = 0;
  /** Time at which each buffer was first found empty, by pause. It comes from a monotonic clock. */
  const emptySinceMs = new Map<string, number>();

  /**
   * Publishes one page of buffered deliveries. Returns "more" if there may be another page.
   *
   * @param closes whether the buffer may be closed if few deliveries are left; false for the first page
   */
  async function runPage(channel: ResumedChannel, closes: boolean): Promise<"more" | "empty"> {
    const { number, organizationId, pause } = channel;
    if (await pauses.end({ channel, pause }, { closes, maxLeft: PAGE })) return "empty";
    const filter = { organizationId, channelNumbers: [number], reason: "paused" } as const;
    const { records } = await quarantine.list(filter, { limit: PAGE, offset: 0 });
    const live = await findCompiledChannel(number);
    // The channel was deleted together with its buffered deliveries.
    if (!live) return "empty";
    const found = await mapBounded(records, FINDS_AT_ONCE, ({ id }) => quarantine.find(organizationId, id));
    const kept = found.flatMap((item) => (item ? [{ id: item.record.id, delivery: item.delivery }] : []));
    await drainPaused.all(live, kept, loop);
    return "more";
  }

  async function drain(channel: ResumedChannel): Promise<void> {
    const claim = { name: `resume.${channel.number}`, holder, ttlMs: timing.leaseMs };
    let claimedAtMs = Number.NEGATIVE_INFINITY;
    try {
      for (let pages = 0; ; pages++) {
        loop.signal.throwIfAborted();
        if (performance.now() - claimedAtMs > timing.leaseMs / 3) {
          if (!(await claimLease(db, claim))) return;
          claimedAtMs = performance.now();
        }
        // The channel may have been paused again, or another gateway may have published its buffer.
        const [same] = await listResumed(db, { number: channel.number });
        if (same?.pause !== channel.pause) return;
        if ((await runPage(channel, pages > 0)) === "empty") break;
      }
      await linger(channel);
      if (!failing.delete(channel.number)) return;
      log.info(
        { event: "pause_drain.recovered", ...channelFacts(channel) },
        "deliveries buffered during a pause are published again",
      );
    } catch (err) {
      if (loop.signal.aborted || failing.has(channel.number)) return;
      failing.add(channel.number);
      log.warn(
        { event: "pause_drain.failing", err, ...channelFacts(channel) },
        "deliveries buffered during a pause cannot be published",
      );
    } finally {
      await releaseLease(db, claim).catch(() => {});
    }
  }

  async function linger(channel: ResumedChannel): Promise<void> {
    const name = nameOf(channel);
    const sinceMs = emptySinceMs.get(name) ?? performance.now();
    emptySinceMs.set(name, sinceMs);
    if (performance.now() - sinceMs < timing.lingerMs) return;
    await endPause(db, channel);
    emptySinceMs.delete(name);
  }

  async function startAll(): Promise<void> {
    const pages = inPages("number", 0, PAGE, (after, limit) => listResumed(db, { after, limit }));
    const resumed = (await Array.fromAsync(pages)).flat();
    const names = new Set(resumed.map(nameOf));
    for (const name of emptySinceMs.keys()) if (!names.has(name)) emptySinceMs.delete(name);
    // Continues after the last started channel, so that a channel that keeps failing cannot block the others.
    const isLater = ({ number }: ResumedChannel): boolean => number > lastStarted;
    waiting = [...resumed.filter(isLater), ...resumed.filter((channel) => !isLater(channel))];
    startWaiting();
  }

  function startWaiting(): void {
    while (!loop.signal.aborted && inFlight.size < CHANNELS_AT_ONCE) {
      const channel = waiting.shift();
      if (!channel) return;
      const { number } = channel;
      if (inFlight.has(number)) continue;
      lastStarted = number;
      const done = drain(channel).finally(() => {
        inFlight.delete(number);
        startWaiting();
      });
      inFlight.set(number, done);
    }
  }

  const loop = startLoop({
    step: startAll,
    everyMs: timing.tickMs,
    onFailing: (err) =>
      log.warn({ event: "pause_drainer.failing", err }, "resumed channels cannot be listed"),
    onRecovered: () => log.info({ event: "pause_drainer.recovered" }, "resumed channels are listed again"),
  });
  deps.changes.subscribe({
    onChange({ kind }) {
      if (kind === "channel") loop.wake();
    },
    onReset: () => loop.wake(),
  });
  return {
    async [Symbol.asyncDispose]() {
      await loop[Symbol.asyncDispose]();
      await Promise.all(inFlight.values());
    },
  };
}

const nameOf = ({ number, pause }: ResumedChannel): string => `${number}.${pause}`;
