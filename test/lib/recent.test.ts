import { expect, it } from "vitest";
import { createRecent } from "../../src/lib/recent.ts";
import { until } from "../support/until.ts";

const MAX_AGE_MS = 40;

/** A look-up whose answers are counted, and that can be made to fail. */
function start(maxEntries = 10) {
  const state = { loads: 0, failing: false };
  const recent = createRecent({
    maxAgeMs: MAX_AGE_MS,
    maxEntries,
    async load(key) {
      state.loads++;
      if (state.failing) throw new Error("away");
      return key === "none" ? undefined : { key, load: state.loads };
    },
  });
  return { recent, state };
}

it("is looked up once by all who ask at the same time, and by who asks a moment later, also what there is not", async () => {
  const { recent, state } = start();
  const [a, b] = await Promise.all([recent.get("a"), recent.get("a")]);
  expect(a).toBe(b);
  expect(await recent.get("a")).toBe(a);
  expect([await recent.get("none"), await recent.get("none")]).toEqual([undefined, undefined]);
  expect(state.loads).toBe(2);
});

it("is never older than its age: a look-up that fails then is not covered up, and none is remembered", async () => {
  const { recent, state } = start();
  await recent.get("a");
  state.failing = true;
  await until(() =>
    recent.get("a").then(
      () => false,
      () => true,
    ),
  );
  await expect(recent.get("a")).rejects.toThrow("away");
  state.failing = false;
  expect(await recent.get("a")).toMatchObject({ key: "a" });
});

it("is looked up anew once it is cleared, by who asks after that", async () => {
  const { recent, state } = start();
  const before = recent.get("a");
  recent.clear();
  const after = recent.get("a");
  expect((await before)?.load).toBe(1);
  expect((await after)?.load).toBe(2);
  expect(state.loads).toBe(2);
});

it("is forgotten where there are too many others", async () => {
  const { recent, state } = start(2);
  for (const key of ["a", "b", "c", "a"]) await recent.get(key);
  expect(state.loads).toBe(4);
});
