import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { SourceFacts } from "../../../src/bus/sources/source-states.ts";
import { createSourceReport } from "../../../src/channels/pull/source-report.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("writes the facts of an event that came while its state was being written, though nothing follows", async () => {
  const written: SourceFacts[] = [];
  const report = createSourceReport(async (facts) => written.push(facts) > 0);
  report.note({ state: "open" });
  report.note({ lastEventAtMs: 1 });
  report.note({ lastEventAtMs: 2, lagMs: 3 });
  await vi.advanceTimersByTimeAsync(4_999);
  expect(written).toEqual([{ state: "open" }]);
  await vi.advanceTimersByTimeAsync(1);
  expect(written.slice(1)).toEqual([{ lastEventAtMs: 2, lagMs: 3 }]);
  await report.close();
  expect(written).toHaveLength(2);
});
