import { expect, it } from "vitest";
import { QuotaError } from "../../../src/lib/errors.ts";
import { createCompileQuota } from "../../../src/lib/json-schema/compile-quota.ts";

it("refuses a lane that has spent its minute, says when to come again, and refuses no other", () => {
  let nowMs = 0;
  const quota = createCompileQuota({
    msPerMinuteOf: (lane) => (lane === "free" ? undefined : 6_000),
    nowMs: () => nowMs,
  });
  const refusal = (lane: string): number | undefined => {
    try {
      quota.require(lane);
    } catch (error) {
      if (error instanceof QuotaError) return error.retryAfterSeconds;
      throw error;
    }
    return undefined;
  };
  quota.spend("busy", 5_000);
  expect(refusal("busy")).toBeUndefined();
  // What was begun is done, and what it took too much is missing afterwards: 100 ms come back in a second.
  quota.spend("busy", 3_000);
  expect(refusal("busy")).toBe(20);
  expect(refusal("other")).toBeUndefined();
  quota.spend("free", 1_000_000);
  expect(refusal("free")).toBeUndefined();
  nowMs += 20_000;
  expect(refusal("busy")).toBe(1);
  nowMs += 1;
  expect(refusal("busy")).toBeUndefined();
  nowMs += 60_000;
  quota.spend("busy", 5_999);
  expect(refusal("busy")).toBeUndefined();
});
