import { expect, it } from "vitest";
import { normalizeRandomDeliveries } from "./random-deliveries.ts";

// More of them in test/deep/normalize-random.test.ts.
it("random deliveries under random rules lose no item, make nothing throw, and become well-formed text", () => {
  expect(normalizeRandomDeliveries(40)).toBe(800);
});
