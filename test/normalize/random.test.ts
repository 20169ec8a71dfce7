import { expect, it } from "vitest";
import { normalizeRandomDeliveries } from "./random-deliveries.ts";

// test/deep/normalize-random.test.ts runs more deliveries.
it("normalizes random deliveries with random rules to well-formed text, without an exception or a lost item", () => {
  expect(normalizeRandomDeliveries(40)).toBe(800);
});
