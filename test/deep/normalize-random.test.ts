import { expect, it } from "vitest";
import { normalizeRandomDeliveries } from "../normalize/random-deliveries.ts";

it("20,000 random deliveries lose no item, make nothing throw, and become well-formed text", () => {
  expect(normalizeRandomDeliveries(1_000)).toBe(20_000);
});
