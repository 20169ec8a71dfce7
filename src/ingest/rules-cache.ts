import { LRUCache } from "lru-cache";
import { MAX_STALENESS_MS } from "../data/changes.ts";
import { UnavailableError } from "../lib/errors.ts";
import { withTimeout } from "../lib/wait.ts";
import type { CompiledChannel, SharedPart } from "./compiled-channel.ts";

/** Of all channels that a worker keeps compiled, by address; beyond it the least used is compiled anew when it is next called. */
const MAX_BYTES = 128 * 1024 * 1024;
/** Of a channel without what it may share, and its place in the cache, measured. */
const CHANNEL_BYTES = 1_000;
const ABSENT_BYTES = 250;
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
  ) => Promise<{ readonly channel: CompiledChannel; readonly leftMs: number | undefined } | undefined>;
  /** How long this worker has not been able to read the change feed, in ms. */
  readonly feedStalenessMs: () => number;
  /** How long a sender waits for a look-up, which goes on for the next one; default 4,000. */
  readonly lookUpTimeoutMs?: number | undefined;
  /** Default 128 MiB. */
  readonly maxBytes?: number;
}

export type RulesCache = ReturnType<typeof createRulesCache>;

/** Stands for an address that is well made but names no channel (it was deleted). */
const ABSENT = Symbol("absent");

/**
 * Channels compiled and in force, by address, as many as fit into so much memory; what several of them share is counted once. A miss
 * is loaded once however many ask for it, and what was read before a change came in is not kept after it.
 */
export function createRulesCache(deps: RulesCacheDeps) {
  const {
    isChannelId,
    load,
    feedStalenessMs,
    lookUpTimeoutMs = LOOK_UP_TIMEOUT_MS,
    maxBytes = MAX_BYTES,
  } = deps;
  /** By channel number; nearly all channels have one. */
  const addresses = new Map<number, string | readonly string[]>();
  /** How many of the channels share it. */
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

  /** The least used go until the rest fits; not the last one, which was just asked for. */
  function makeRoom(): void {
    while (channels.calculatedSize + sharedBytes > maxBytes && channels.size > 1) channels.pop();
  }

  async function loadOnce(channelId: string): Promise<CompiledChannel | undefined> {
    const before = generation;
    const { channel, leftMs } = (await load(channelId)) ?? {};
    if (before !== generation) return channel;
    // As it was asked for it may be a part of a longer text, which it would keep.
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
    find(channelId: string): CompiledChannel | undefined | Promise<CompiledChannel | undefined> {
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
      for (const channelId of addressesOf(channelNumber)) channels.delete(channelId);
    },
    clear(): void {
      startGeneration();
      channels.clear();
    },
  };
}
