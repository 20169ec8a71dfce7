import { expect, it } from "vitest";
import { normalizeRandomDeliveries } from "./random-deliveries.ts";

// test/deep/normalize-random.test.ts runs more deliveries.
it("normalizing random deliveries with random rules never throws, loses an item or yields malformed text", () => {
  expect(normalizeRandomDeliveries(40)).toBe(800);
});
