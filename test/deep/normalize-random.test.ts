import { expect, it } from "vitest";
import { normalizeRandomDeliveries } from "../normalize/random-deliveries.ts";

it("20,000 random deliveries lose no item, cause no exception, and produce well-formed text", () => {
  expect(normalizeRandomDeliveries(1_000)).toBe(20_000);
});
