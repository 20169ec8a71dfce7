import { describe, expect, it, vi } from "vitest";
import type { RunPlan } from "../../../../src/channels/pull/open-run.ts";
import type { SourceRuns } from "../../../../src/channels/pull/source-runs.ts";
import { StreamRunner } from "../../../../src/channels/pull/streams/stream-runner.ts";
import type { SourceEnd, StreamRun, StreamSource } from "../../../../src/channels/source.ts";
import { unlessAborted } from "../../../../src/lib/wait.ts";
import { FairLimiter } from "../../../../src/limits/fairness.ts";
import { createLog } from "../../../../src/log.ts";
import { until } from "../../../support/until.ts";

const NOW_MS = 1_000_000;
const POLICY = { initialMs: 1, maxMs: 20, factor: 2, jitter: 0, resetAfterMs: 3_600_000 };
const FAILED: SourceEnd = { kind: "failed", code: "reset", message: "cut" };

/** Starts a stream whose runs end as given. Records the plan after each run. */
function startStream(end: (nth: number) => SourceEnd, options: { failures?: number; writes?: boolean } = {}) {
  let { failures = 0 } = options;
  const plans: (RunPlan & { readonly waitMs: number })[] = [];
  const skippedBackoffs: boolean[] = [];
  const runs: SourceRuns = {
    async openRun(_, { signal, skipBackoff = false, onOpened }) {
      skippedBackoffs.push(skipBackoff);
      const run = { signal, config: {}, opened: () => onOpened?.() } as StreamRun;
      const open = {
        ...run,
        failures,
        hasWritten: () => options.writes === true,
        async end(_: SourceEnd | undefined, plan: RunPlan = {}) {
          if (plan.nextAtMs === undefined) return;
          plans.push({ ...plan, waitMs: plan.nextAtMs - NOW_MS });
          failures = plan.failures ?? 0;
        },
      };
      return { kind: "open", open };
    },
  };
  const stream: StreamSource = { reconnect: () => POLICY, runConnection: async () => end(plans.length) };
  const runner = new StreamRunner(1, {
    runs,
    stream,
    owner: "wk_1",
    clock: () => NOW_MS,
    random: () => 0.5,
    starts: new FairLimiter(64),
    log: createLog({ level: "silent" }),
  });
  return { runner, plans, skippedBackoffs, [Symbol.asyncDispose]: () => runner.stop() };
}

describe("a stream source that reconnects", () => {
  it("waits longer after each failure, up to its maximum wait", async () => {
    await using stream = startStream(() => FAILED);
    await until(() => stream.plans.length >= 7);
    expect(stream.plans.slice(0, 7).map(({ waitMs }) => waitMs)).toEqual([1, 2, 4, 8, 16, 20, 20]);
  });

  it("includes the stored failures of other workers in its backoff", async () => {
    await using stream = startStream(() => FAILED, { failures: 3 });
    await until(() => stream.plans.length >= 1);
    expect(stream.plans[0]).toMatchObject({ failures: 4, waitMs: 8 });
  });

  it("waits longer after each connection without events, but not after a connection with events", async () => {
    await using silent = startStream(() => ({ kind: "done" }));
    await using sending = startStream(() => ({ kind: "done" }), { writes: true });
    await until(() => silent.plans.length >= 3 && sending.plans.length >= 3);
    expect(silent.plans.slice(0, 3).map(({ waitMs }) => waitMs)).toEqual([1, 2, 4]);
    expect(sending.plans.slice(0, 3).map(({ waitMs }) => waitMs)).toEqual([1, 1, 1]);
  });

  it("waits for the time that the server requests", async () => {
    await using stream = startStream(() => ({ ...FAILED, notBeforeMs: NOW_MS + 3_600_000 }));
    await until(() => stream.plans.length >= 1);
    expect(stream.plans[0]?.waitMs).toBe(3_600_000);
  });

  it("reconnects at once, without backoff, when it is restarted", async () => {
    await using stream = startStream(() => ({ ...FAILED, notBeforeMs: NOW_MS + 3_600_000 }));
    await until(() => stream.plans.length === 1);
    stream.runner.restart();
    await until(() => stream.plans.length === 2);
    expect(stream.skippedBackoffs).toEqual([false, true]);
  });
});

it("a stream source that takes more than two seconds to start does not block the next stream source", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const starts = new FairLimiter(1);
    const begun: number[] = [];
    const runs: SourceRuns = {
      async openRun(number, { signal }) {
        begun.push(number);
        return unlessAborted(signal, new Promise(() => {}));
      },
    };
    const start = (number: number) =>
      new StreamRunner(number, {
        stream: { reconnect: () => POLICY, runConnection: async () => FAILED },
        runs,
        starts,
        owner: "wk_1",
        clock: () => NOW_MS,
        random: () => 0.5,
        log: createLog({ level: "silent" }),
      });
    const runners = [1, 2, 3].map(start);
    for (const most of [1, 2, 3]) {
      while (begun.length < most) await new Promise((resolve) => setImmediate(resolve));
      vi.advanceTimersByTime(1_999);
      await new Promise((resolve) => setImmediate(resolve));
      expect(begun.length).toBe(most);
      vi.advanceTimersByTime(1);
    }
    expect(begun).toEqual([1, 2, 3]);
    await Promise.all(runners.map((runner) => runner.stop()));
  } finally {
    vi.useRealTimers();
  }
});
