import { describe, expect, it } from "vitest";
import { expectAllRefused, hostileSettings } from "./hostile-requests.ts";

// test/deep/hostile-requests.test.ts runs more requests.
describe("a random request", () => {
  it.each(hostileSettings)("is rejected by the scheme %s without an exception", async (_, verification) => {
    await expect(expectAllRefused(verification, 60)).resolves.toBeUndefined();
  });
});
