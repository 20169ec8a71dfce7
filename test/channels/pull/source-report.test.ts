import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { SourceFacts } from "../../../src/bus/sources/source-states.ts";
import { SourceReport } from "../../../src/channels/pull/source-report.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("the status report of a source writes several state changes within 100 ms as one write with the last state", async () => {
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

it("the status report of a source writes pending changes at once when the report is closed", async () => {
  const written: SourceFacts[] = [];
  const report = new SourceReport(async (facts) => written.push(facts) > 0);
  report.note({ state: "connecting" });
  report.note({ state: "waiting" });
  await report.close();
  expect(written).toEqual([{ state: "waiting" }]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(written).toHaveLength(1);
});

it("the status report of a source writes changes that arrive during a write in a second write", async () => {
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
