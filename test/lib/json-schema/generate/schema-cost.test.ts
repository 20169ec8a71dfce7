import { expect, test } from "vitest";
import type { JsonSchema } from "../../../../src/lib/json-schema/compiled-schema.ts";
import { References } from "../../../../src/lib/json-schema/generate/references.ts";
import { schemaCost } from "../../../../src/lib/json-schema/generate/schema-cost.ts";

const costOf = (schema: JsonSchema): number => {
  const copy = structuredClone(schema) as Record<string, unknown> | boolean;
  return schemaCost(copy, new References(copy, "2020-12").targets);
};

test("the estimated cost of a schema is the number of its subschemas after all references are expanded", () => {
  expect(costOf(true)).toBe(1);
  expect(costOf({ properties: { a: { type: "null" }, b: {} } })).toBe(3);
  const $defs: Record<string, JsonSchema> = { d0: {} };
  for (let i = 1; i <= 30; i++)
    $defs[`d${i}`] = { allOf: [{ $ref: `#/$defs/d${i - 1}` }, { $ref: `#/$defs/d${i - 1}` }] };
  expect(costOf({ $defs, $ref: "#/$defs/d30" })).toBeGreaterThan(2 ** 30);
});

test.each<[string, JsonSchema]>([
  ["recursion", { items: { $ref: "#" } }],
  [
    "mutual recursion",
    { $defs: { a: { $ref: "#/$defs/b" }, b: { not: { $ref: "#/$defs/a" } } }, $ref: "#/$defs/a" },
  ],
  ["recursion by an anchor", { $defs: { a: { $anchor: "x", items: { $ref: "#x" } } }, $ref: "#x" }],
  ["recursion by a dynamic reference", { $dynamicAnchor: "x", items: { $dynamicRef: "#x" } }],
  ["recursion by a URI", { properties: { a: { $id: "x", items: { $ref: "x" } } } }],
  ["items compared in pairs", { uniqueItems: true }],
  ["objects compared in pairs", { uniqueItems: true, items: { type: ["string", "object"] } }],
])("the estimated cost of a schema is infinite for %s", (_, schema) => {
  expect(costOf(schema)).toBe(Number.POSITIVE_INFINITY);
});

test("the estimated cost of a schema stays low for uniqueItems with few or scalar items", () => {
  expect(costOf({ uniqueItems: true, maxItems: 10 })).toBe(1);
  expect(costOf({ uniqueItems: true, items: { type: "string" } })).toBe(2);
  expect(costOf({ const: { $ref: "#" }, enum: [{ $ref: "#" }], examples: [{ uniqueItems: true }] })).toBe(1);
});
