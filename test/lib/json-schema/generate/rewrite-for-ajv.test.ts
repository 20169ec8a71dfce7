/** Schemas for which generated code easily deviates from the specification. Each one validates correctly or is rejected. */
import { describe, expect, it } from "vitest";
import type { JsonSchema } from "../../../../src/lib/json-schema/compiled-schema.ts";
import { sharedSchemas } from "../../../support/schemas.ts";

const CALLER = { lane: "a" };

const DRAFT_07 = "http://json-schema.org/draft-07/schema#";
const { signal } = new AbortController();
/** Parses JSON as a client sends it, because an object literal would interpret `__proto__` as the prototype. */
const parseSchema = (text: string): JsonSchema => JSON.parse(text);

async function verdicts(schema: JsonSchema, values: readonly unknown[]): Promise<readonly boolean[]> {
  const compiled = await sharedSchemas().compile(schema, { signal, lane: "a" });
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.error));
  return Promise.all(
    values.map(async (value) => (await compiled.value.validate(value, CALLER)) === undefined),
  );
}

async function compileErrors(schema: JsonSchema) {
  const compiled = await sharedSchemas().compile(schema, { signal, lane: "a" });
  return compiled.ok ? [] : compiled.error;
}

const person = { properties: { name: { type: "string" } }, required: ["name"] };

describe("a JSON Schema validator correctly handles", () => {
  it.each<[string, JsonSchema, readonly unknown[], readonly unknown[]]>([
    [
      "if without then and else, which evaluates properties if it matches",
      { if: person, unevaluatedProperties: false },
      [{ name: "a" }, {}],
      [{ name: 1 }, { name: "a", x: 1 }, { x: 1 }],
    ],
    [
      "if with only else, which evaluates no properties if it fails",
      { if: person, else: { properties: { n: true } }, unevaluatedProperties: false },
      [{ name: "a" }, { n: 1 }],
      [{ name: 1 }, { name: 1, n: 1 }, { name: "a", n: 1 }],
    ],
    [
      "if with then and else",
      parseSchema('{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}'),
      [{ a: 1, b: 1 }, { c: 1 }],
      [{ a: 1, c: 1 }, { b: 1 }],
    ],
    [
      "if without then and else, which evaluates items",
      { if: { prefixItems: [{ const: "a" }] }, unevaluatedItems: false },
      [["a"], []],
      [["b"], ["a", "a"]],
    ],
    [
      "unevaluatedItems after a branch that evaluates all items or no items",
      { anyOf: [{ items: { type: "string" } }, true], unevaluatedItems: { type: "boolean" } },
      [["a", "b"], [true, false], []],
      [["a", true], [1]],
    ],
    [
      "unevaluatedItems after a failed branch, which evaluates no items",
      { anyOf: [{ prefixItems: [{ const: 1 }] }, true], unevaluatedItems: false },
      [[1], []],
      [[2], [1, 1]],
    ],
    [
      "an unevaluated property with an inherited name",
      {
        anyOf: [{ properties: { a: true } }, { patternProperties: { "^b": true } }],
        unevaluatedProperties: false,
      },
      [{ a: 1, b: 1 }],
      [parseSchema('{"constructor":1}'), { toString: 1 }],
    ],
    [
      "a property named __proto__",
      parseSchema('{"properties":{"__proto__":{"type":"number"},"a":true},"additionalProperties":false}'),
      [parseSchema('{"__proto__":1,"a":1}'), {}],
      [parseSchema('{"__proto__":"x"}'), { b: 1 }],
    ],
    [
      "a pattern that equals __proto__",
      parseSchema('{"patternProperties":{"__proto__":{"type":"number"}}}'),
      [parseSchema('{"x__proto__y":1}')],
      [parseSchema('{"x__proto__y":"x"}'), parseSchema('{"__proto__":"x"}')],
    ],
    [
      "a constant with a member named __proto__",
      parseSchema('{"const":{"__proto__":1}}'),
      [parseSchema('{"__proto__":1}')],
      [{}, parseSchema('{"__proto__":2}')],
    ],
    [
      "a reference to a schema named __proto__",
      parseSchema('{"$ref":"#/$defs/__proto__","$defs":{"__proto__":{"type":"null"}}}'),
      [null],
      [1],
    ],
    [
      "$dynamicRef with a single anchor of its name",
      { $defs: { a: { $dynamicAnchor: "n", type: "string" } }, items: { $dynamicRef: "#n" } },
      [["a"], []],
      [[1]],
    ],
    [
      "$dynamicRef to the schema itself",
      {
        $dynamicAnchor: "node",
        properties: { next: { $dynamicRef: "#node" } },
        unevaluatedProperties: false,
      },
      [{ next: { next: {} } }],
      [{ next: { nxt: {} } }],
    ],
    [
      "$dynamicRef to a plain anchor, and to a pointer",
      {
        $defs: { a: { $anchor: "n", type: "null" }, b: { minItems: 1 } },
        items: { $dynamicRef: "#n" },
        $dynamicRef: "#/$defs/b",
      },
      [[null]],
      [[1], []],
    ],
    [
      "$dynamicRef next to $ref",
      {
        $defs: { a: { $dynamicAnchor: "n", maximum: 5 }, b: { minimum: 3 } },
        $ref: "#/$defs/b",
        $dynamicRef: "#n",
      },
      [4],
      [2, 6],
    ],
    [
      "keywords next to $ref in draft 7, which are ignored",
      {
        $schema: DRAFT_07,
        definitions: { a: { type: "array" } },
        properties: { x: { $ref: "#/definitions/a", maxItems: 1 } },
      },
      [{ x: [1, 2] }],
      [{ x: 1 }],
    ],
    [
      "keywords next to $ref in 2020-12, which apply",
      { $defs: { a: { type: "array" } }, $ref: "#/$defs/a", maxItems: 1 },
      [[1]],
      [[1, 2], 1],
    ],
    [
      "$id next to $ref in draft 7, which is ignored",
      {
        $schema: DRAFT_07,
        $id: "http://example.com/",
        definitions: {
          a: { $id: "http://example.com/other/", $ref: "b.json" },
          b: { $id: "b.json", type: "null" },
        },
        $ref: "#/definitions/a",
      },
      [null],
      [1],
    ],
    [
      "URIs relative to one another",
      {
        $id: "http://example.com/root.json",
        $ref: "one.json",
        $defs: {
          a: {
            $id: "one.json",
            $ref: "#/$defs/inner",
            $defs: { inner: { $id: "two.json", $ref: "one.json#n" }, n: { $anchor: "n", type: "null" } },
          },
        },
      },
      [null],
      [1],
    ],
    [
      "URIs that are URNs",
      {
        $id: "urn:example:a",
        $ref: "urn:example:b#/$defs/x",
        $defs: { b: { $id: "urn:example:b", $defs: { x: { $ref: "#/$defs/y" }, y: { type: "null" } } } },
      },
      [null],
      [1],
    ],
    [
      "a reference to a schema outside known keywords",
      { $ref: "#/parts/a%20b/0", parts: { "a b": [{ $ref: "#/parts/c~1d" }], "c/d": { type: "null" } } },
      [null],
      [1],
    ],
    [
      "keywords of references inside data",
      {
        properties: { $ref: { type: "string" }, $id: { type: "string" } },
        const: { $ref: "#/none", $id: "a b" },
      },
      [{ $ref: "#/none", $id: "a b" }],
      [{}],
    ],
    [
      "contains with minContains 0 in a schema without unevaluatedItems",
      { contains: { type: "null" }, minContains: 0, maxContains: 1 },
      [[], [1], [null]],
      [[null, null]],
    ],
    [
      "contains inside an item of an array with unevaluatedItems",
      { prefixItems: [{ contains: { const: 1 } }], unevaluatedItems: false },
      [[[1]]],
      [[[2]], [[1], 1]],
    ],
  ])("%s", async (_, schema, valid, invalid) => {
    expect(await verdicts(schema, valid)).toEqual(valid.map(() => true));
    expect(await verdicts(schema, invalid)).toEqual(invalid.map(() => false));
  });
});

describe("the schema compiler rejects", () => {
  it.each<[string, JsonSchema, string, RegExp]>([
    [
      "contains next to unevaluatedItems",
      { contains: true, unevaluatedItems: false },
      "/contains",
      /unevaluatedItems/,
    ],
    [
      "contains with minContains 0 next to unevaluatedItems",
      { unevaluatedItems: { type: "null" }, contains: { const: 1 }, minContains: 0 },
      "/contains",
      /unevaluatedItems/,
    ],
    [
      "contains in a referenced schema next to unevaluatedItems",
      {
        $defs: { a: { allOf: [{ if: { contains: { const: 1 } } }] } },
        anyOf: [{ $ref: "#/$defs/a" }],
        unevaluatedItems: false,
      },
      "/$defs/a/allOf/0/if/contains",
      /unevaluatedItems/,
    ],
    [
      "$dynamicRef if several URIs declare its anchor",
      {
        $id: "http://example.com/a",
        $dynamicAnchor: "n",
        $defs: { list: { $id: "list", items: { $dynamicRef: "#n" }, $defs: { n: { $dynamicAnchor: "n" } } } },
        $ref: "list",
      },
      "/$defs/list/items/$dynamicRef",
      /several schemas with their own \$id/,
    ],
    [
      "a URI that two schemas declare",
      { $defs: { a: { $id: "x" }, b: { $id: "x" } } },
      "/$defs/b/$id",
      /another part/,
    ],
    [
      "a nested schema of another dialect",
      { $defs: { a: { $id: "x", $schema: DRAFT_07 } } },
      "/$defs/a/$schema",
      /must equal the .schema/,
    ],
    [
      "a reference to a missing anchor",
      { $ref: "#n", properties: { n: { const: { $anchor: "n" } } } },
      "/$ref",
      /does not exist/,
    ],
    [
      "a reference to a value that is not a schema",
      { $ref: "#/required", required: ["a"] },
      "/$ref",
      /does not point to a schema/,
    ],
    ["a reference to a meta-schema", { items: { $ref: DRAFT_07 } }, "/items/$ref", /never fetches/],
    ["an empty enum", { items: { enum: [] } }, "/items/enum", /at least one value/],
    [
      "a dependency on a property named __proto__",
      parseSchema('{"dependencies":{"__proto__":["a"]}}'),
      "/dependencies/__proto__",
      /not supported/,
    ],
    [
      "a property named __proto__ with unevaluatedProperties",
      parseSchema('{"properties":{"__proto__":true},"unevaluatedProperties":false}'),
      "/properties/__proto__",
      /unevaluatedProperties/,
    ],
  ])("%s", async (_, schema, path, message) => {
    expect(await compileErrors(schema)).toEqual([{ path, message: expect.stringMatching(message) }]);
  });
});
