import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createRepeatedLines } from "../../src/lib/repeated-lines.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("repeated lines are written at once for a new reason, then once per interval with their number", () => {
  const lines: string[] = [];
  const note = createRepeatedLines(1_000);
  const fail = (reason: string, times: number): void => {
    for (let i = 1; i <= times; i++) note(reason, (count) => lines.push(`${reason} ${i} ×${count}`));
  };
  fail("redis", 3);
  fail("database", 1);
  expect(lines).toEqual(["redis 1 ×1", "database 1 ×1"]);
  vi.advanceTimersByTime(1_000);
  expect(lines.slice(2)).toEqual(["redis 3 ×2"]);
  fail("redis", 5);
  vi.advanceTimersByTime(1_000);
  expect(lines.slice(3)).toEqual(["redis 5 ×5"]);
  vi.advanceTimersByTime(2_000);
  expect(lines).toHaveLength(4);
  expect(vi.getTimerCount()).toBe(0);
  fail("redis", 1);
  expect(lines.slice(4)).toEqual(["redis 1 ×1"]);
});

it("repeated lines share one count if there are too many reasons", () => {
  let lines = 0;
  const note = createRepeatedLines(1_000);
  for (let reason = 0; reason < 10_000; reason++) note(`reason ${reason}`, () => void lines++);
  expect(lines).toBe(101);
});
