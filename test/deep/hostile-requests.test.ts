import { expect, it } from "vitest";
import { expectAllRejected, hostileSettings } from "../verify/hostile-requests.ts";

it.each(
  hostileSettings,
)("2,000 random requests are rejected by the scheme %s without an exception", async (_, verification) => {
  await expect(expectAllRejected(verification, 2_000)).resolves.toBeUndefined();
});
