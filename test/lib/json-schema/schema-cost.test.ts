import { expect, test } from "vitest";
import type { JsonSchema } from "../../../src/lib/json-schema/compiled-schema.ts";
import { schemaCost } from "../../../src/lib/json-schema/schema-cost.ts";

test("the cost of a schema is its subschemas, with every reference written out", () => {
  expect(schemaCost(true)).toBe(1);
  expect(schemaCost({ properties: { a: { type: "null" }, b: {} } })).toBe(3);
  const $defs: Record<string, JsonSchema> = { d0: {} };
  for (let i = 1; i <= 30; i++)
    $defs[`d${i}`] = { allOf: [{ $ref: `#/$defs/d${i - 1}` }, { $ref: `#/$defs/d${i - 1}` }] };
  expect(schemaCost({ $defs, $ref: "#/$defs/d30" })).toBeGreaterThan(2 ** 30);
});

test.each<[string, JsonSchema]>([
  ["recursion", { items: { $ref: "#" } }],
  [
    "mutual recursion",
    { $defs: { a: { $ref: "#/$defs/b" }, b: { not: { $ref: "#/$defs/a" } } }, $ref: "#/$defs/a" },
  ],
  ["anchors", { $defs: { a: { $anchor: "x" } }, $ref: "#x" }],
  ["dynamic references", { $dynamicRef: "#x" }],
  ["embedded schemas", { properties: { a: { $id: "x" } } }],
  ["items compared in pairs", { uniqueItems: true }],
  ["objects compared in pairs", { uniqueItems: true, items: { type: ["string", "object"] } }],
])("the cost of %s is infinite", (_, schema) => {
  expect(schemaCost(schema)).toBe(Number.POSITIVE_INFINITY);
});

test("unique items that are few or scalar cost little; data in a schema costs nothing", () => {
  expect(schemaCost({ uniqueItems: true, maxItems: 10 })).toBe(1);
  expect(schemaCost({ uniqueItems: true, items: { type: "string" } })).toBe(2);
  expect(schemaCost({ const: { $ref: "#" }, enum: [{ $ref: "#" }], examples: [{ uniqueItems: true }] })).toBe(
    1,
  );
});
