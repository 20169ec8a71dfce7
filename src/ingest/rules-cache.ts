import { LRUCache } from "lru-cache";
import { MAX_STALENESS_MS } from "../data/changes.ts";
import { UnavailableError } from "../lib/errors.ts";
import { upToEntries } from "../lib/up-to-entries.ts";
import { withTimeout } from "../lib/wait.ts";
import type { LiveChannel } from "./live-channel.ts";

/** How many addresses a worker keeps compiled, at 5 to 8 kB each; beyond it the least used is compiled anew when it is next called. */
const MAX_CHANNELS = 30_000;
/** How long a sender waits for a look-up; it goes on for the next sender. */
const LOOK_UP_TIMEOUT_MS = 4_000;

export interface RulesCacheDeps {
  /** Tells a true address from an invented one without any look-up. */
  readonly isChannelId: (channelId: string) => boolean;
  /**
   * Reads and compiles the channel behind an address. `leftMs`: how long the address goes on; undefined: as long as the channel.
   *
   * @throws UnavailableError when that cannot be known now.
   */
  readonly load: (
    channelId: string,
  ) => Promise<{ readonly channel: LiveChannel; readonly leftMs: number | undefined } | undefined>;
  /** How long this worker has not been able to read the change feed, in ms. */
  readonly feedStalenessMs: () => number;
  /** Default 4,000. */
  readonly lookUpTimeoutMs?: number;
}

export type RulesCache = ReturnType<typeof createRulesCache>;

/** Stands for an address that is well made but names no channel (it was deleted). */
const ABSENT = Symbol("absent");

/**
 * Channels compiled and in force, by address. A miss is loaded once however many ask for it, and what was read before a
 * change came in is not kept after it.
 */
export function createRulesCache(deps: RulesCacheDeps) {
  const { isChannelId, load, feedStalenessMs, lookUpTimeoutMs = LOOK_UP_TIMEOUT_MS } = deps;
  const addresses = new Map<number, Set<string>>();
  const channels = new LRUCache<string, LiveChannel | typeof ABSENT>({
    ...upToEntries(MAX_CHANNELS),
    dispose: (channel, channelId) => {
      if (channel !== ABSENT) forget(channel.identity.number, channelId);
    },
  });
  const loading = new Map<string, Promise<LiveChannel | undefined>>();
  let generation = 0;

  function forget(channelNumber: number, channelId: string): void {
    const known = addresses.get(channelNumber);
    known?.delete(channelId);
    if (known?.size === 0) addresses.delete(channelNumber);
  }

  async function loadOnce(channelId: string): Promise<LiveChannel | undefined> {
    const before = generation;
    const { channel, leftMs } = (await load(channelId)) ?? {};
    if (before !== generation) return channel;
    channels.set(channelId, channel ?? ABSENT, leftMs === undefined ? {} : { ttl: Math.ceil(leftMs) });
    if (channel !== undefined) {
      const { number } = channel.identity;
      addresses.set(number, (addresses.get(number) ?? new Set()).add(channelId));
    }
    return channel;
  }

  function startLoading(channelId: string): Promise<LiveChannel | undefined> {
    const started = loadOnce(channelId).finally(() => {
      if (loading.get(channelId) === started) loading.delete(channelId);
    });
    loading.set(channelId, started);
    return started;
  }

  /** A look-up from now on must not be answered by a read that began before the change. */
  function startGeneration(): void {
    generation++;
    loading.clear();
  }

  return {
    /**
     * The channel in force behind an address, at once where it is cached.
     *
     * @throws UnavailableError when that cannot be known now.
     */
    find(channelId: string): LiveChannel | undefined | Promise<LiveChannel | undefined> {
      const cached = channels.get(channelId);
      if (cached === undefined && !isChannelId(channelId)) return undefined;
      if (feedStalenessMs() > MAX_STALENESS_MS)
        throw new UnavailableError("changes cannot be read since ten minutes");
      if (cached !== undefined) return cached === ABSENT ? undefined : cached;
      const late = `the look-up of a channel takes more than ${lookUpTimeoutMs} ms`;
      return withTimeout(lookUpTimeoutMs, loading.get(channelId) ?? startLoading(channelId), late);
    },
    /** Forgets what is known of a channel, by its inner number. */
    drop(channelNumber: number): void {
      startGeneration();
      for (const channelId of addresses.get(channelNumber) ?? []) channels.delete(channelId);
    },
    clear(): void {
      startGeneration();
      channels.clear();
    },
  };
}
