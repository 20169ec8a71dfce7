import { LRUCache } from "lru-cache";
import { MAX_STALENESS_MS } from "../data/changes.ts";
import { UnavailableError } from "../lib/errors.ts";
import { withTimeout } from "../lib/wait.ts";
import type { CompiledChannel, SharedPart } from "./compile-channel.ts";

/** Maximum memory of all compiled channels, in bytes. The least recently used channels are evicted and compiled again on demand. */
const MAX_BYTES = 128 * 1024 * 1024;
/** Measured memory of a cached channel in bytes, without the parts that it shares with other channels. */
const CHANNEL_BYTES = 1_000;
const ABSENT_BYTES = 250;
const LOOK_UP_TIMEOUT_MS = 4_000;

export interface RulesCacheDeps {
  /** Returns whether this cluster issued the channel id. Checks the signature in the id, without a database query. */
  readonly isChannelId: (channelId: string) => boolean;
  /**
   * Loads and compiles a channel. `leftMs` is the remaining lifetime of its id, or `undefined` if the id does not expire.
   *
   * @throws UnavailableError if the channel cannot be loaded right now
   */
  readonly load: (
    channelId: string,
  ) => Promise<{ readonly channel: CompiledChannel; readonly leftMs: number | undefined } | undefined>;
  /** Returns the time since this process last read the change feed, in ms. */
  readonly feedStalenessMs: () => number;
  /**
   * Maximum time that a sender waits for its channel to load, in ms (default: 4,000). Loading continues afterwards, so that later requests
   * can use the result.
   */
  readonly lookUpTimeoutMs?: number | undefined;
  /** Maximum memory of the cache in bytes. Defaults to 128 MiB. */
  readonly maxBytes?: number;
}

export type RulesCache = ReturnType<typeof createRulesCache>;

/** Cached in place of a channel that does not exist, such as a deleted channel. */
const ABSENT = Symbol("absent");

/**
 * Caches compiled channels by channel id, up to a memory limit. Parts that channels share are counted once, and concurrent requests share
 * one lookup. A lookup that started before a change of any channel is not cached.
 */
export function createRulesCache(deps: RulesCacheDeps) {
  const {
    isChannelId,
    load,
    feedStalenessMs,
    lookUpTimeoutMs = LOOK_UP_TIMEOUT_MS,
    maxBytes = MAX_BYTES,
  } = deps;
  /** Channel ids by internal channel id. A channel rarely has several channel ids. */
  const addresses = new Map<number, string | readonly string[]>();
  /** Number of cached channels that use each shared part, so that unused parts can be dropped. */
  const uses = new Map<SharedPart, number>();
  let sharedBytes = 0;
  const channels = new LRUCache<string, CompiledChannel | typeof ABSENT>({
    maxSize: maxBytes,
    sizeCalculation: (channel) => (channel === ABSENT ? ABSENT_BYTES : CHANNEL_BYTES),
    dispose: (channel, channelId) => {
      if (channel === ABSENT) return;
      forget(channel.identity.number, channelId);
      for (const shared of channel.shares ?? []) release(shared);
    },
  });
  const loading = new Map<string, Promise<CompiledChannel | undefined>>();
  let generation = 0;

  const addressesOf = (channelNumber: number): readonly string[] =>
    [addresses.get(channelNumber) ?? []].flat();

  function remember(channelNumber: number, channelId: string): void {
    const others = addressesOf(channelNumber);
    addresses.set(channelNumber, others.length === 0 ? channelId : [...others, channelId]);
  }

  function forget(channelNumber: number, channelId: string): void {
    const others = addressesOf(channelNumber).filter((one) => one !== channelId);
    if (others.length === 0) addresses.delete(channelNumber);
    else addresses.set(channelNumber, others);
  }

  function hold(shared: SharedPart): void {
    const before = uses.get(shared) ?? 0;
    uses.set(shared, before + 1);
    if (before === 0) sharedBytes += shared.bytes;
  }

  function release(shared: SharedPart): void {
    const left = (uses.get(shared) ?? 0) - 1;
    if (left > 0) {
      uses.set(shared, left);
      return;
    }
    uses.delete(shared);
    sharedBytes -= shared.bytes;
  }

  /** Evicts the least recently used channels until the memory limit is met. The newest channel stays, because it was just requested. */
  function makeRoom(): void {
    while (channels.calculatedSize + sharedBytes > maxBytes && channels.size > 1) channels.pop();
  }

  async function loadOnce(channelId: string): Promise<CompiledChannel | undefined> {
    const before = generation;
    const { channel, leftMs } = (await load(channelId)) ?? {};
    if (before !== generation) return channel;
    // A copy is needed because the id may be a slice of a longer string, which would stay in memory.
    const key = Buffer.from(channelId, "latin1").toString("latin1");
    channels.set(key, channel ?? ABSENT, leftMs === undefined ? {} : { ttl: Math.ceil(leftMs) });
    if (channel !== undefined) {
      remember(channel.identity.number, key);
      for (const shared of channel.shares ?? []) hold(shared);
    }
    makeRoom();
    return channel;
  }

  function startLoading(channelId: string): Promise<CompiledChannel | undefined> {
    const started = loadOnce(channelId).finally(() => {
      if (loading.get(channelId) === started) loading.delete(channelId);
    });
    loading.set(channelId, started);
    return started;
  }

  /** Starts a new generation of lookups. Lookups that started before a change must not provide results for requests after the change. */
  function startGeneration(): void {
    generation++;
    loading.clear();
  }

  return {
    /**
     * Returns the channel with this id, without a promise if it is cached. Returns `undefined` if no such channel exists.
     *
     * @throws UnavailableError if it cannot be looked up right now
     */
    find(channelId: string): CompiledChannel | undefined | Promise<CompiledChannel | undefined> {
      const cached = channels.get(channelId);
      if (cached === undefined && !isChannelId(channelId)) return undefined;
      if (feedStalenessMs() > MAX_STALENESS_MS)
        throw new UnavailableError("the change feed has been unreadable for more than 10 minutes");
      if (cached !== undefined) return cached === ABSENT ? undefined : cached;
      const late = `looking up the channel took more than ${lookUpTimeoutMs} ms`;
      return withTimeout(lookUpTimeoutMs, loading.get(channelId) ?? startLoading(channelId), late);
    },
    drop(channelNumber: number): void {
      startGeneration();
      for (const channelId of addressesOf(channelNumber)) channels.delete(channelId);
    },
    clear(): void {
      startGeneration();
      channels.clear();
    },
  };
}
