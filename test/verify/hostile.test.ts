import { describe, expect, it } from "vitest";
import { expectAllRejected, hostileSettings } from "./hostile-requests.ts";

// test/deep/hostile-requests.test.ts runs more requests.
describe("a random request", () => {
  it.each(
    hostileSettings,
  )("is rejected by the verification scheme %s without an exception", async (_, verification) => {
    await expect(expectAllRejected(verification, 60)).resolves.toBeUndefined();
  });
});
