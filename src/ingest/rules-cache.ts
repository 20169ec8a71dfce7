import { LRUCache } from "lru-cache";
import { MAX_STALENESS_MS } from "../data/changes.ts";
import { UnavailableError } from "../lib/errors.ts";
import type { LiveChannel } from "./live-channel.ts";

/** How many addresses a worker keeps compiled; beyond it the least used is compiled anew when it is next called. */
const MAX_CHANNELS = 10_000;
/** How long a sender waits for a look-up; it goes on for the next sender. */
const LOOK_UP_TIMEOUT_MS = 4_000;

export interface RulesCacheDeps {
  /** Tells a true address from an invented one without any look-up. */
  readonly isChannelId: (channelId: string) => boolean;
  /** Reads and compiles the channel behind an address. @throws UnavailableError when that cannot be known now. */
  readonly load: (channelId: string) => Promise<LoadedChannel | undefined>;
  /** How long this worker has not been able to read the change feed, in ms. */
  readonly feedStalenessMs: () => number;
  /** Default 4,000. */
  readonly lookUpTimeoutMs?: number;
}

/** `leftMs`: how long the address goes on; undefined: as long as the channel. */
export interface LoadedChannel {
  readonly channel: LiveChannel;
  readonly leftMs: number | undefined;
}

export interface RulesCache {
  /**
   * The channel in force behind an address, at once where it is cached.
   *
   * @throws UnavailableError when that cannot be known now.
   */
  readonly find: (channelId: string) => LiveChannel | undefined | Promise<LiveChannel | undefined>;
  /** Forgets what is known of a channel, by its inner number. */
  readonly drop: (channelNumber: number) => void;
  readonly clear: () => void;
}

/** Stands for an address that is well made but names no channel (it was deleted). */
const ABSENT = Symbol("absent");

/**
 * Channels compiled and in force, by address. A miss is loaded once however many ask for it, and what was read before a
 * change came in is not kept after it.
 */
export function createRulesCache(deps: RulesCacheDeps): RulesCache {
  const { isChannelId, load, feedStalenessMs, lookUpTimeoutMs = LOOK_UP_TIMEOUT_MS } = deps;
  const addresses = new Map<number, Set<string>>();
  const channels = new LRUCache<string, LiveChannel | typeof ABSENT>({
    max: MAX_CHANNELS,
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
    find(channelId) {
      const cached = channels.get(channelId);
      if (cached === undefined && !isChannelId(channelId)) return undefined;
      if (feedStalenessMs() > MAX_STALENESS_MS)
        throw new UnavailableError("changes cannot be read since ten minutes");
      if (cached !== undefined) return cached === ABSENT ? undefined : cached;
      return inTime(loading.get(channelId) ?? startLoading(channelId), lookUpTimeoutMs);
    },
    drop(channelNumber) {
      startGeneration();
      for (const channelId of addresses.get(channelNumber) ?? []) channels.delete(channelId);
    },
    clear() {
      startGeneration();
      channels.clear();
    },
  };
}

async function inTime<T>(lookUp: Promise<T>, timeoutMs: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => reject(new UnavailableError(`the look-up of a channel takes more than ${timeoutMs} ms`)),
    timeoutMs,
  );
  try {
    return await Promise.race([lookUp, late]);
  } finally {
    clearTimeout(timer);
  }
}
