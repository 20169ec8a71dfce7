import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createBreaker } from "../../src/handlers/breaker.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

const FAILURES = 5;

describe("a handler's circuit breaker", () => {
  it("opens after five failures in a row, and each further failure doubles the time until the next attempt, up to five minutes", () => {
    const changes: boolean[] = [];
    const breaker = createBreaker({ firstWaitMs: 1_000, onChange: (isOpen) => changes.push(isOpen) });
    const waits: number[] = [];
    for (let i = 1; i <= FAILURES + 9; i++) {
      breaker.recordRejection();
      waits.push(breaker.waitMs());
    }
    expect(waits).toEqual([0, 0, 0, 0, ...[1, 2, 4, 8, 16, 32, 64, 128, 256, 300].map((s) => s * 1_000)]);
    expect(changes).toEqual([true]);
  });

  it("closes after the first success, and then needs five failures again to open", () => {
    const changes: boolean[] = [];
    const breaker = createBreaker({ firstWaitMs: 1_000, onChange: (isOpen) => changes.push(isOpen) });
    for (let i = 0; i < FAILURES + 3; i++) breaker.recordRejection();
    breaker.noteTaken();
    expect(breaker.waitMs()).toBe(0);
    for (let i = 0; i < FAILURES; i++) breaker.recordRejection();
    expect(breaker.waitMs()).toBe(1_000);
    expect(changes).toEqual([true, false, true]);
  });
});
