import { expect, it } from "vitest";
import { type LoopOptions, startLoop } from "../../src/lib/loop.ts";
import { until } from "../support/until.ts";

/** A loop whose waits end when the test calls `end`, or when the loop aborts them. */
function start(options: Partial<LoopOptions> = {}) {
  const reports: string[] = [];
  const waits: { readonly ms: number; readonly end: () => void }[] = [];
  const state = { iterations: 0, failing: false };
  const loop = startLoop({
    async step() {
      state.iterations++;
      if (state.failing) throw new Error("away");
    },
    everyMs: 1_000,
    onFailing: (error) => reports.push(String(error)),
    onRecovered: () => reports.push("recovered"),
    random: () => 0,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        waits.push({ ms, end: resolve });
        if (signal.aborted) resolve();
        else signal.addEventListener("abort", () => resolve(), { once: true });
      }),
    ...options,
  });
  /** Returns the n-th wait (from 1) after the loop has reached it. */
  const wait = async (n: number) => {
    await until(() => waits.length >= n);
    const found = waits[n - 1];
    if (!found) throw new Error("no wait");
    return found;
  };
  return { loop, reports, waits, state, wait, [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose]() };
}

it("a loop waits for the interval after each successful iteration", async () => {
  await using run = start();
  for (const n of [1, 2, 3]) {
    const { ms, end } = await run.wait(n);
    expect([ms, run.state.iterations]).toEqual([1_000, n]);
    end();
  }
});

it("a loop with waitsFirst runs its first iteration after the interval or after wake()", async () => {
  await using run = start({ waitsFirst: true });
  expect([(await run.wait(1)).ms, run.state.iterations]).toEqual([1_000, 0]);
  run.loop.wake();
  await until(() => run.state.iterations === 1);
});

it("a loop reads its interval again after each iteration", async () => {
  let everyMs = 5;
  await using run = start({ everyMs: () => everyMs });
  const first = await run.wait(1);
  everyMs = 7;
  first.end();
  expect([first.ms, (await run.wait(2)).ms]).toEqual([5, 7]);
});

it("a loop runs the next iteration immediately after wake(), even if wake() was called during an iteration", async () => {
  const gate = Promise.withResolvers<void>();
  let iterations = 0;
  await using run = start({
    async step() {
      iterations++;
      if (iterations === 2) await gate.promise;
    },
  });
  await run.wait(1);
  run.loop.wake();
  await until(() => iterations === 2);
  run.loop.wake();
  run.loop.wake();
  gate.resolve();
  await run.wait(3);
  expect(iterations).toBe(3);
});

it("a loop keeps the minimum time between iterations, even if wake() is called", async () => {
  await using run = start({ gapMs: 200 });
  const gap = await run.wait(1);
  run.loop.wake();
  expect([gap.ms, run.state.iterations]).toEqual([200, 1]);
  gap.end();
  await until(() => run.state.iterations === 2);
});

it("a failing loop increases its wait with each failure, ignores wake(), and reports each change of state once", async () => {
  await using run = start({ retry: { initialMs: 10, maxMs: 40, factor: 2, jitter: 0.5 } });
  const first = await run.wait(1);
  run.state.failing = true;
  first.end();
  for (const [n, ms] of [10, 20, 40, 40].entries()) {
    const wait = await run.wait(n + 2);
    expect(wait.ms).toBe(ms);
    run.loop.wake();
    expect(run.state.iterations).toBe(n + 2);
    if (n === 3) run.state.failing = false;
    wait.end();
  }
  const after = await run.wait(6);
  expect([after.ms, run.reports]).toEqual([1_000, ["Error: away", "recovered"]]);
  run.state.failing = true;
  after.end();
  expect((await run.wait(7)).ms).toBe(10);
});

it("a failing loop shortens its waits randomly by the configured jitter", async () => {
  await using run = start({
    random: () => 0.5,
    retry: { initialMs: 10, maxMs: 40, factor: 2, jitter: 0.5 },
    async step() {
      throw new Error("away");
    },
  });
  expect((await run.wait(1)).ms).toBe(7.5);
});

it("a loop runs no iteration if it is disposed before the first iteration", async () => {
  const run = start();
  await run[Symbol.asyncDispose]();
  expect(run.state.iterations).toBe(0);
});

it("disposing a loop aborts the current iteration, waits for its end, and does not count it as a failure", async () => {
  const [started, aborted, finish] = [0, 1, 2].map(() => Promise.withResolvers<void>());
  const run = start({
    async step(signal) {
      started?.resolve();
      signal.addEventListener("abort", () => aborted?.resolve());
      await finish?.promise;
      signal.throwIfAborted();
    },
  });
  await started?.promise;
  let hasEnded = false;
  const ended = run[Symbol.asyncDispose]().then(() => {
    hasEnded = true;
  });
  await aborted?.promise;
  expect(hasEnded).toBe(false);
  finish?.resolve();
  await ended;
  expect([run.reports, run.loop.signal.aborted]).toEqual([[], true]);
});

it("disposing a loop ends the wait between two iterations", async () => {
  for (const failing of [false, true]) {
    const run = start();
    run.state.failing = failing;
    await run.wait(1);
    await run[Symbol.asyncDispose]();
    expect(run.state.iterations).toBe(1);
  }
});
