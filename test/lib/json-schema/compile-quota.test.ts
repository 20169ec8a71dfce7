import { expect, it } from "vitest";
import { QuotaError } from "../../../src/lib/errors.ts";
import { createCompileQuota } from "../../../src/lib/json-schema/compile-quota.ts";

it("the CPU quota for compiling schemas rejects only an organization without remaining quota, and returns when to retry", () => {
  let nowMs = 0;
  const quota = createCompileQuota({
    msPerMinuteOf: (lane) => (lane === "free" ? undefined : 6_000),
    nowMs: () => nowMs,
  });
  const retryAfter = (lane: string): number | undefined => {
    try {
      quota.require(lane);
    } catch (error) {
      if (error instanceof QuotaError) return error.retryAfterSeconds;
      throw error;
    }
    return undefined;
  };
  quota.spend("busy", 5_000);
  expect(retryAfter("busy")).toBeUndefined();
  // A started compilation completes, and its excess is deducted. The quota refills by 100 ms per second,
  // and the next compilation needs at least 1 ms.
  quota.spend("busy", 3_000);
  expect(retryAfter("busy")).toBe(21);
  expect(retryAfter("other")).toBeUndefined();
  quota.spend("free", 1_000_000);
  expect(retryAfter("free")).toBeUndefined();
  nowMs += 20_000;
  expect(retryAfter("busy")).toBe(1);
  nowMs += 10;
  expect(retryAfter("busy")).toBeUndefined();
  nowMs += 60_000;
  quota.spend("busy", 5_999);
  expect(retryAfter("busy")).toBeUndefined();
});
