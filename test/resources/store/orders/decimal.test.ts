import fc from "fast-check";
import { expect, it } from "vitest";
import { addDecimals, percentOf } from "../../../../src/resources/store/orders/decimal.ts";

it("addDecimals adds exactly, and returns as many decimal places as the more precise amount has", () => {
  expect(addDecimals("0.1", "0.2")).toBe("0.3");
  expect(addDecimals("19.90", "0.5")).toBe("20.40");
  expect(addDecimals("1500", "0")).toBe("1500");
  expect(addDecimals("999999999999.9999", "0.0001")).toBe("1000000000000.0000");
});

it("percentOf rounds half up to four decimal places, and omits trailing zeros", () => {
  expect(percentOf("19.90", "12.5")).toBe("2.4875");
  expect(percentOf("19.90", "10")).toBe("1.99");
  expect(percentOf("0.01", "0.5")).toBe("0.0001");
  expect(percentOf("0.01", "0.4999")).toBe("0.00");
  expect(percentOf("999999999999.9999", "100")).toBe("999999999999.9999");
  expect(percentOf("100", "0")).toBe("0");
});

it("percentOf is never larger than the amount, and differs from the exact value by at most half a unit of the fourth decimal place", () => {
  const decimal = (max: number) =>
    fc.tuple(fc.integer({ min: 0, max }), fc.integer({ min: 0, max: 9_999 })).map(([whole, fraction]) => ({
      text: `${whole}.${String(fraction).padStart(4, "0")}`,
      units: BigInt(whole) * 10_000n + BigInt(fraction),
    }));
  fc.assert(
    fc.property(decimal(1e11), decimal(99), (amount, rate) => {
      const share = BigInt(percentOf(amount.text, rate.text).replace(".", ""));
      const exact = amount.units * rate.units;
      expect(share <= amount.units).toBe(true);
      const error = share * 1_000_000n - exact;
      expect(error > -500_000n - 1n && error <= 500_000n).toBe(true);
    }),
  );
});
