import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { SourceFacts } from "../../../src/bus/sources/source-states.ts";
import { SourceReport } from "../../../src/channels/pull/source-report.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("writes only the last state of those reported within a tenth of a second", async () => {
  const written: SourceFacts[] = [];
  const report = new SourceReport(async (facts) => written.push(facts) > 0);
  report.note({ state: "connecting", owner: "wk_1" });
  await vi.advanceTimersByTimeAsync(99);
  report.note({ state: "open" });
  report.note({ lastEventAtMs: 1 });
  expect(written).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(written).toEqual([{ state: "open", owner: "wk_1", lastEventAtMs: 1 }]);
  await report.close();
});

it("writes the pending facts without a delay when it is closed", async () => {
  const written: SourceFacts[] = [];
  const report = new SourceReport(async (facts) => written.push(facts) > 0);
  report.note({ state: "connecting" });
  report.note({ state: "waiting" });
  await report.close();
  expect(written).toEqual([{ state: "waiting" }]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(written).toHaveLength(1);
});

it("writes facts that are reported during a write, even if no later report follows", async () => {
  const written: SourceFacts[] = [];
  const writing = Promise.withResolvers<boolean>();
  const report = new SourceReport((facts) => {
    written.push(facts);
    return written.length === 1 ? writing.promise : Promise.resolve(true);
  });
  report.note({ state: "open" });
  await vi.advanceTimersByTimeAsync(100);
  report.note({ lastEventAtMs: 1 });
  report.note({ lastEventAtMs: 2, lagMs: 3 });
  writing.resolve(true);
  await vi.advanceTimersByTimeAsync(4_999);
  expect(written).toEqual([{ state: "open" }]);
  await vi.advanceTimersByTimeAsync(1);
  expect(written.slice(1)).toEqual([{ lastEventAtMs: 2, lagMs: 3 }]);
  await report.close();
  expect(written).toHaveLength(2);
});
