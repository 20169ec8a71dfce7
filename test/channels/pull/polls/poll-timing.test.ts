import { describe, expect, it } from "vitest";
import { nextTimeMs } from "../../../../src/bus/jobs/job-plan.ts";
import {
  failureWaitMs,
  nextPoll,
  planFrom,
  toJobPlan,
} from "../../../../src/channels/pull/polls/poll-timing.ts";

const HOUR = 3_600_000;

/** Returns the next times of a plan, in UTC with minute precision. */
function timesOf(cron: string, timezone: string, from: string, count: number): readonly string[] {
  const plan = toJobPlan({ cron, timezone, jitter: 0 }, 1);
  const times: string[] = [];
  for (let atMs: number | undefined = Date.parse(from); times.length < count; ) {
    atMs = nextTimeMs(plan, atMs);
    if (atMs === undefined) break;
    times.push(new Date(atMs).toISOString().slice(5, 16));
  }
  return times;
}

describe("the poll schedule of a source", () => {
  it("has one time per interval, counted from the start of the schedule", () => {
    const plan = planFrom(toJobPlan({ everySeconds: 60, jitter: 0 }, 17), 1e12 + 0.5);
    expect(nextTimeMs(plan, 1e12 + 1)).toBe(1e12 + 60_001);
    expect(nextTimeMs(plan, 1e12 + 60_001)).toBe(1e12 + 120_001);
  });

  it("has random jitter that only lengthens the interval and is the same on all workers", () => {
    const plan = toJobPlan({ everySeconds: 60, jitter: 0.5 }, 5);
    let atMs = nextTimeMs(plan, 1e12) ?? 0;
    const gaps: number[] = [];
    for (let i = 0; i < 1_000; i++) {
      const next = nextTimeMs(plan, atMs) ?? 0;
      expect(nextTimeMs(plan, next - 1)).toBe(next);
      gaps.push(next - atMs);
      atMs = next;
    }
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(60_000);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(90_000);
    expect(new Set(gaps).size).toBeGreaterThan(900);
  });

  it("has one time per day for a daily cron expression, even on days when daylight saving time starts or ends", () => {
    expect(timesOf("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", 3)).toEqual([
      "03-28T01:30",
      "03-29T01:30",
      "03-30T00:30",
    ]);
    expect(timesOf("30 2 * * *", "Europe/Berlin", "2026-10-24T00:00:00Z", 3)).toEqual([
      "10-24T00:30",
      "10-25T00:30",
      "10-26T01:30",
    ]);
    expect(timesOf("0 9 * * 1-5", "America/New_York", "2026-03-06T12:00:00Z", 3)).toEqual([
      "03-06T14:00",
      "03-09T13:00",
      "03-10T13:00",
    ]);
  });

  it("delays the time of a cron expression by less than a minute with jitter, and not at all without jitter", () => {
    const exact = toJobPlan({ cron: "0 3 * * *", timezone: "UTC", jitter: 0 }, 9);
    expect((nextTimeMs(exact, 1e12) ?? 0) % (24 * HOUR)).toBe(3 * HOUR);
    const late = Array.from({ length: 500 }, (_, i) => {
      const plan = toJobPlan({ cron: "0 3 * * *", timezone: "UTC", jitter: 0.1 }, i);
      return ((nextTimeMs(plan, 1e12) ?? 0) % (24 * HOUR)) - 3 * HOUR;
    });
    expect(Math.min(...late)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...late)).toBeLessThan(60_000);
    expect(Math.max(...late) - Math.min(...late)).toBeGreaterThan(30_000);
  });

  it("cannot be created from invalid settings", () => {
    expect(() => toJobPlan({ cron: "0 25 * * *", timezone: "UTC", jitter: 0 }, 1)).toThrow();
    expect(() => toJobPlan({ cron: "0 3 * * *", timezone: "Nowhere/At_All", jitter: 0 }, 1)).toThrow();
  });
});

describe("the wait after failed polls", () => {
  const waits = (everySeconds: number, random = 0.5) =>
    [0, 1, 2, 3, 4, 50].map((failures) =>
      failureWaitMs(failures, toJobPlan({ everySeconds, jitter: 0 }, 1), 1e12, random),
    );

  it("grows with each failure, up to eight intervals and at most an hour", () => {
    expect(waits(60)).toEqual([30_000, 60_000, 120_000, 240_000, 480_000, 480_000]);
    expect(waits(1)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 60_000]);
    expect(waits(86_400).at(-1)).toBe(HOUR);
    expect(waits(60, 0)[0]).toBe(22_500);
    expect(waits(60, 1)[0]).toBe(37_500);
  });

  it("ends at the next scheduled time if that time is near, otherwise with an extra poll", () => {
    const often = toJobPlan({ everySeconds: 60, jitter: 0 }, 1);
    const planned = nextTimeMs(often, 1e12 + 40_000) ?? 0;
    expect(nextPoll(often, 1e12, 1e12 + 40_000)).toEqual({ atMs: planned, isExtra: planned - 1e12 > 80_000 });
    const daily = toJobPlan({ cron: "0 3 * * *", timezone: "UTC", jitter: 0 }, 1);
    expect(nextPoll(daily, 1e12, 1e12 + 40_000)).toEqual({ atMs: 1e12 + 40_000, isExtra: true });
    expect(nextPoll(daily, 1e12, 1e12 - 5)).toEqual({ atMs: 1e12, isExtra: true });
  });
});
