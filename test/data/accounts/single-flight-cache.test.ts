import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createSingleFlightCache } from "../../../src/data/accounts/single-flight-cache.ts";

const MAX_AGE_MS = 40;

// Ages are counted by a clock that the test moves.
beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

/** A look-up whose answers are counted, and that can be made to fail. */
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

it("a key is looked up once for all who ask within its age, also one that does not exist", async () => {
  const { cache, state } = start();
  const [a, b] = await Promise.all([cache.get("a"), cache.get("a")]);
  vi.advanceTimersByTime(MAX_AGE_MS);
  expect(a).toBe(b);
  expect(await cache.get("a")).toBe(a);
  expect([await cache.get("none"), await cache.get("none")]).toEqual([undefined, undefined]);
  expect(state.loads).toBe(2);
});

it("a value past its age is looked up anew: when that fails the old value is not given", async () => {
  const { cache, state } = start();
  await cache.get("a");
  state.failing = true;
  expect(await cache.get("a")).toEqual({ key: "a", load: 1 });
  vi.advanceTimersByTime(MAX_AGE_MS + 1);
  await expect(cache.get("a")).rejects.toThrow("away");
});

it("a failure is not remembered", async () => {
  const { cache, state } = start();
  state.failing = true;
  await expect(cache.get("a")).rejects.toThrow("away");
  state.failing = false;
  expect(await cache.get("a")).toEqual({ key: "a", load: 2 });
});

it("a value is looked up anew after a clear, also while the old look-up is under way", async () => {
  const { cache, state } = start();
  const before = cache.get("a");
  cache.clear();
  const after = cache.get("a");
  expect((await before)?.load).toBe(1);
  expect((await after)?.load).toBe(2);
  expect(state.loads).toBe(2);
});

it("the value that was used longest ago is forgotten when there are too many", async () => {
  const { cache, state } = start(2);
  for (const key of ["a", "b", "c", "a"]) await cache.get(key);
  expect(state.loads).toBe(4);
});
