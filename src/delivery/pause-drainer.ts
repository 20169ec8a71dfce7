import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Pauses } from "../bus/groups/pauses.ts";
import type { QuarantineStore } from "../bus/quarantine/quarantine.ts";
import type { Change } from "../data/changes.ts";
import { endPause, listResumed, type ResumedChannel } from "../data/channel-states.ts";
import type { Queryable } from "../data/database.ts";
import { claimLease, releaseLease } from "../data/leases.ts";
import type { RedriveKept } from "../ingest/drain-paused.ts";
import type { LiveChannel } from "../ingest/live-channel.ts";
import { mapBounded } from "../lib/map-bounded.ts";
import type { Log } from "../log.ts";

export interface ResumerDeps {
  readonly db: Queryable;
  readonly quarantine: Pick<QuarantineStore, "list" | "find">;
  readonly pauses: Pauses;
  readonly redriveKept: RedriveKept;
  /** The channel in force; undefined where it was deleted. */
  readonly findLiveChannel: (channelNumber: number) => Promise<LiveChannel | undefined>;
  readonly log: Log;
  readonly timing?: Partial<ResumerTiming>;
}

export interface ResumerTiming {
  /** Between looks for resumed channels; a change of a channel is looked at once. */
  readonly beatEveryMs: number;
  /** How long a gateway that died keeps the others from its channels. */
  readonly leaseMs: number;
  /**
   * How long a channel is looked after once nothing is left: longer than a worker can take to keep a delivery (five seconds)
   * that dies before it has looked whether the pause is over.
   */
  readonly lookAfterMs: number;
}

/** Disposal waits for what is under way and leaves the rest to others. */
export interface Resumer extends AsyncDisposable {
  /** To be told of what the change feed brings. */
  readonly noteChange: (change: Change) => void;
}

const TIMING: ResumerTiming = { beatEveryMs: 1_000, leaseMs: 15_000, lookAfterMs: 15_000 };
const CHANNELS_AT_ONCE = 4;
const PAGE = 100;
const FINDS_AT_ONCE = 16;

/**
 * Brings through what pauses have kept, in order of arrival, once the channels are resumed. What is to be done stands in the
 * database and in quarantine: every gateway takes channels on, each channel is one gateway's at a time by a lease, and where
 * that gateway dies another goes on with what is still kept.
 */
export function startResumer(deps: ResumerDeps): Resumer {
  const { db, quarantine, pauses, redriveKept, findLiveChannel, log } = deps;
  const timing = { ...TIMING, ...deps.timing };
  const holder = randomUUID();
  const stopping = new AbortController();
  const { signal } = stopping;
  const failing = new Set<number>();
  const underWay = new Map<number, Promise<void>>();
  /** Those of the last look that wait for a place. */
  let waiting: ResumedChannel[] = [];
  let lastStarted = 0;
  /** Since when nothing was left of a pause. */
  const emptySinceMs = new Map<string, number>();
  let wake: () => void = () => {};

  /** Runs one page; "more" where there may be another. The pause closes only once a page has gone through. */
  async function runPage(channel: ResumedChannel, closes: boolean): Promise<"more" | "empty"> {
    const { number, organizationId, pause } = channel;
    if (await pauses.end({ channel, pause }, { closes, little: PAGE })) return "empty";
    const filter = { organizationId, channelNumbers: [number], reason: "paused" } as const;
    const { records } = await quarantine.list(filter, { limit: PAGE, offset: 0 });
    const live = await findLiveChannel(number);
    // Deleted: its quarantine goes with it.
    if (!live) return "empty";
    const found = await mapBounded(records, FINDS_AT_ONCE, ({ id }) => quarantine.find(organizationId, id));
    const kept = found.flatMap((item) => (item ? [{ id: item.record.id, delivery: item.delivery }] : []));
    await redriveKept.all(live, kept, { signal });
    return "more";
  }

  async function bringThrough(channel: ResumedChannel): Promise<void> {
    const claim = { name: `resume.${channel.number}`, holder, ttlMs: timing.leaseMs };
    let claimedAtMs = Number.NEGATIVE_INFINITY;
    try {
      for (let pages = 0; ; pages++) {
        signal.throwIfAborted();
        if (performance.now() - claimedAtMs > timing.leaseMs / 3) {
          if (!(await claimLease(db, claim))) return;
          claimedAtMs = performance.now();
        }
        // Paused again, or ended by another, since it was listed.
        const [same] = await listResumed(db, { number: channel.number });
        if (same?.pause !== channel.pause) return;
        if ((await runPage(channel, pages > 0)) === "empty") break;
      }
      await lookAfter(channel);
      if (failing.delete(channel.number)) log.info({ channel: channel.number }, "kept deliveries go on");
    } catch (error) {
      if (signal.aborted || failing.has(channel.number)) return;
      failing.add(channel.number);
      log.warn({ err: error, channel: channel.number }, "kept deliveries have to wait");
    } finally {
      await releaseLease(db, claim).catch(() => {});
    }
  }

  async function lookAfter(channel: ResumedChannel): Promise<void> {
    const name = nameOf(channel);
    const sinceMs = emptySinceMs.get(name) ?? performance.now();
    emptySinceMs.set(name, sinceMs);
    if (performance.now() - sinceMs < timing.lookAfterMs) return;
    await endPause(db, channel);
    emptySinceMs.delete(name);
  }

  async function startAll(): Promise<void> {
    const resumed: ResumedChannel[] = [];
    for (let after = 0; ; after = resumed.at(-1)?.number ?? after) {
      const page = await listResumed(db, { after, limit: PAGE });
      resumed.push(...page);
      if (page.length < PAGE) break;
    }
    const names = new Set(resumed.map(nameOf));
    for (const name of emptySinceMs.keys()) if (!names.has(name)) emptySinceMs.delete(name);
    // Each look goes on after the last: a few that fail, or are looked after, must not keep the places for themselves.
    const isLater = ({ number }: ResumedChannel): boolean => number > lastStarted;
    waiting = [...resumed.filter(isLater), ...resumed.filter((channel) => !isLater(channel))];
    startWaiting();
  }

  function startWaiting(): void {
    while (!signal.aborted && underWay.size < CHANNELS_AT_ONCE) {
      const channel = waiting.shift();
      if (!channel) return;
      const { number } = channel;
      if (underWay.has(number)) continue;
      lastStarted = number;
      const done = bringThrough(channel).finally(() => {
        underWay.delete(number);
        startWaiting();
      });
      underWay.set(number, done);
    }
  }

  async function run(): Promise<void> {
    let blind = false;
    while (!signal.aborted) {
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      try {
        await startAll();
        blind = false;
      } catch (error) {
        if (!blind && !signal.aborted) log.warn({ err: error }, "resumed channels cannot be looked for");
        blind = true;
      }
      const next = new AbortController();
      const beat = delay(timing.beatEveryMs, undefined, { signal: AbortSignal.any([signal, next.signal]) });
      await Promise.race([beat.catch(() => {}), ...(blind ? [] : [woken])]);
      next.abort();
    }
    await Promise.all(underWay.values());
  }

  const running = run();
  return {
    noteChange({ kind }) {
      if (kind === "channel") wake();
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await running;
    },
  };
}

const nameOf = ({ number, pause }: ResumedChannel): string => `${number}.${pause}`;
