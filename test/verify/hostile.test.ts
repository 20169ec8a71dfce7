import { describe, expect, it } from "vitest";
import { expectAllRejected, hostileConfig } from "./hostile-requests.ts";

// test/deep/hostile-requests.test.ts runs more requests.
describe("a random request", () => {
  it.each(
    hostileConfig,
  )("is rejected by the verification scheme %s without an exception", async (_, verification) => {
    await expect(expectAllRejected(verification, 60)).resolves.toBeUndefined();
  });
});
