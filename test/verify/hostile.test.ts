import { describe, expect, it } from "vitest";
import { expectAllRefused, hostileSettings } from "./hostile-requests.ts";

// More of them in test/deep/hostile-requests.test.ts.
describe("a random request", () => {
  it.each(
    hostileSettings,
  )("is refused by the scheme %s, and never makes it throw", async (_, verification) => {
    await expect(expectAllRefused(verification, 60)).resolves.toBeUndefined();
  });
});
