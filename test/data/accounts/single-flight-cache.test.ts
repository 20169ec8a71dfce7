import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createSingleFlightCache } from "../../../src/data/accounts/single-flight-cache.ts";

const MAX_AGE_MS = 40;

// The test controls the clock that measures the age of values.
beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

/** Creates a lookup that counts its calls and can be made to fail. */
function start(maxEntries = 10) {
  const state = { loads: 0, failing: false };
  const cache = createSingleFlightCache({
    maxAgeMs: MAX_AGE_MS,
    maxEntries,
    async load(key) {
      state.loads++;
      if (state.failing) throw new Error("away");
      return key === "none" ? undefined : { key, load: state.loads };
    },
  });
  return { cache, state };
}

it("the single-flight cache looks up a key once within the maximum age, even if no value exists", async () => {
  const { cache, state } = start();
  const [a, b] = await Promise.all([cache.get("a"), cache.get("a")]);
  vi.advanceTimersByTime(MAX_AGE_MS);
  expect(a).toBe(b);
  expect(await cache.get("a")).toBe(a);
  expect([await cache.get("none"), await cache.get("none")]).toEqual([undefined, undefined]);
  expect(state.loads).toBe(2);
});

it("the single-flight cache looks up an expired value again, and rejects if that lookup fails", async () => {
  const { cache, state } = start();
  await cache.get("a");
  state.failing = true;
  expect(await cache.get("a")).toEqual({ key: "a", load: 1 });
  vi.advanceTimersByTime(MAX_AGE_MS + 1);
  await expect(cache.get("a")).rejects.toThrow("away");
});

it("the single-flight cache does not cache a failed lookup", async () => {
  const { cache, state } = start();
  state.failing = true;
  await expect(cache.get("a")).rejects.toThrow("away");
  state.failing = false;
  expect(await cache.get("a")).toEqual({ key: "a", load: 2 });
});

it("the single-flight cache starts a new lookup after clear(), even while an older lookup is in flight", async () => {
  const { cache, state } = start();
  const before = cache.get("a");
  cache.clear();
  const after = cache.get("a");
  expect((await before)?.load).toBe(1);
  expect((await after)?.load).toBe(2);
  expect(state.loads).toBe(2);
});

it("the single-flight cache evicts the least recently used value when the cache is full", async () => {
  const { cache, state } = start(2);
  for (const key of ["a", "b", "c", "a"]) await cache.get(key);
  expect(state.loads).toBe(4);
});
