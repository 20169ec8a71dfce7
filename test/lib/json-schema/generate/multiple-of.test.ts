import { describe, expect, it, test } from "vitest";
import type { JsonSchema } from "../../../../src/lib/json-schema/compiled-schema.ts";
import { isMultipleOf } from "../../../../src/lib/json-schema/generate/multiple-of.ts";
import { sharedSchemas } from "../../../support/schemas.ts";

const CALLER = { lane: "a" };

const { signal } = new AbortController();

async function isValid(schema: JsonSchema, value: unknown): Promise<boolean> {
  const compiled = await sharedSchemas().compile(schema, { signal, lane: "a" });
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.error));
  return (await compiled.value.validate(value, CALLER)) === undefined;
}

test("isMultipleOf accepts every amount from 0.00 to 999.99 as a multiple of 0.01, and rejects amounts with a third decimal", () => {
  const wrong: string[] = [];
  for (let cents = 0; cents < 100_000; cents++) {
    const amount = `${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, "0")}`;
    for (const sign of ["", "-"]) {
      if (!isMultipleOf(Number(sign + amount), 0.01)) wrong.push(sign + amount);
      if (isMultipleOf(Number(`${sign + amount}5`), 0.01)) wrong.push(`${sign + amount}5`);
    }
  }
  expect(wrong).toEqual([]);
});

describe("isMultipleOf", () => {
  it.each([
    [0, 0.01],
    [-0, 3],
    [0.3, 0.1],
    [-4.02, 0.01],
    [1.13, 0.01],
    [9, 3],
    [-9, 3],
    [7.5, 2.5],
    [1e-7, 1e-8],
    [3e-7, 1e-7],
    [12391239123, 1e-8],
    [1e308, 0.5],
    [1e308, 1e-308],
    [1e308, 2],
    [1.5e300, 3],
    [5e-324, 5e-324],
    [Number.MAX_SAFE_INTEGER, 9007199254740991],
    [9007199254740994, 2],
  ])("returns true for the value %d and the divisor %d", (value, divisor) =>
    expect(isMultipleOf(value, divisor)).toBe(true));

  it.each([
    [0.35, 0.1],
    [19.015, 0.01],
    [10, 3],
    [-10, 3],
    [1e-8, 1e-7],
    [1e308, 0.123456789],
    [1e308, 3],
    [1, 0],
    [0.5, 0],
    [Number.POSITIVE_INFINITY, 0.5],
  ])("returns false for the value %d and the divisor %d", (value, divisor) =>
    expect(isMultipleOf(value, divisor)).toBe(false));
});

/** A recursive schema is validated in the worker. */
const recursive = { items: { $ref: "#" } };
describe.each<[string, object]>([
  ["on this thread", {}],
  ["in the worker", recursive],
  ["in draft 7", { $schema: "http://json-schema.org/draft-07/schema#" }],
])("the keyword multipleOf %s", (_, rest) => {
  it("compares values in decimal arithmetic, and its error message names the divisor", async () => {
    const schema = { ...rest, multipleOf: 0.01 };
    expect(await isValid(schema, 19.01)).toBe(true);
    expect(await isValid(schema, 19.015)).toBe(false);
    expect(await isValid(schema, "19.015")).toBe(true);
    const compiled = await sharedSchemas().compile(schema, { signal, lane: "a" });
    expect(compiled.ok && (await compiled.value.validate(1.001, CALLER))).toEqual({
      path: "",
      message: "must be multiple of 0.01",
    });
  });
});
