import { expect, test } from "vitest";
import type { JsonSchema } from "../../../src/lib/json-schema/compiled-schema.ts";
import { schemaCost } from "../../../src/lib/json-schema/schema-cost.ts";

test("counts subschemas with every reference written out", () => {
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
])("%s has no bound", (_, schema) => {
  expect(schemaCost(schema)).toBe(Number.POSITIVE_INFINITY);
});

test("few or scalar items are compared at little cost; data in a schema is not a schema", () => {
  expect(schemaCost({ uniqueItems: true, maxItems: 10 })).toBe(1);
  expect(schemaCost({ uniqueItems: true, items: { type: "string" } })).toBe(2);
  expect(schemaCost({ const: { $ref: "#" }, enum: [{ $ref: "#" }], examples: [{ uniqueItems: true }] })).toBe(
    1,
  );
});
