import { expect, it } from "vitest";
import { expectAllRejected, hostileConfig } from "../verify/hostile-requests.ts";

it.each(
  hostileConfig,
)("the verification scheme %s rejects 2,000 random requests without throwing", async (_, verification) => {
  await expect(expectAllRejected(verification, 2_000)).resolves.toBeUndefined();
});
