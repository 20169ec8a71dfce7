import { expect, it } from "vitest";
import { normalizeRandomDeliveries } from "../normalize/random-deliveries.ts";

it("20,000 random deliveries are split into items without losing one, without an exception and with well-formed text", () => {
  expect(normalizeRandomDeliveries(1_000)).toBe(20_000);
});
