import { LRUCache } from "lru-cache";

/** True where it is this one's turn. */
export type Sampler = (key: number, nowMs: number) => boolean;

/** Lets through the first of a key, then at most one per `everyMs`, for the `maxKeys` last seen. */
export function createSampler({ everyMs, maxKeys }: { everyMs: number; maxKeys: number }): Sampler {
  const lastMs = new LRUCache<number, number>({ max: maxKeys });
  return (key, nowMs) => {
    const before = lastMs.get(key);
    // A clock that was set back must not silence a key.
    if (before !== undefined && Math.abs(nowMs - before) < everyMs) return false;
    lastMs.set(key, nowMs);
    return true;
  };
}
