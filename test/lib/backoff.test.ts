import { describe, expect, it } from "vitest";
import { backoffMs } from "../../src/lib/backoff.ts";

const backoff = { initialMs: 100, maxMs: 1_000, factor: 2, jitter: 0.5 };

describe("backoffMs", () => {
  it("multiplies the wait by the factor after each failure, up to the maximum", () => {
    const waits = [1, 2, 3, 4, 5, 6].map((failures) => backoffMs(backoff, failures, () => 0));
    expect(waits).toEqual([100, 200, 400, 800, 1_000, 1_000]);
  });

  it("randomly reduces the wait by at most the share that jitter specifies", () => {
    expect(backoffMs(backoff, 3, () => 1)).toBe(200);
    expect(backoffMs(backoff, 3, () => 0.5)).toBe(300);
    expect(backoffMs({ ...backoff, jitter: 0 }, 3, () => 1)).toBe(400);
  });

  it("returns at most the maximum after any number of failures", () => {
    expect(backoffMs(backoff, 5_000, () => 0)).toBe(1_000);
  });
});
