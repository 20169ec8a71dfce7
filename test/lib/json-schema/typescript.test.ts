import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { JsonSchema } from "../../../src/lib/json-schema/compiled-schema.ts";
import { createTypeWriter, TypesTooLongError } from "../../../src/lib/json-schema/typescript/write-types.ts";
import { describeDeep } from "../../support/deep-run.ts";

const MAX = 1_000_000;

function typeOf(schema: JsonSchema): string {
  const writer = createTypeWriter(MAX);
  writer.add(["x"], schema);
  return writer.text().replace(/^export type X = (.*);\n$/s, "$1");
}

const DRAFT_07 = "http://json-schema.org/draft-07/schema#";

describe("the type of a schema", () => {
  it.each<[string, JsonSchema, string]>([
    ["true is unknown", true, "unknown"],
    ["false is never", false, "never"],
    ["scalars keep their type", { type: ["string", "integer", "null"] }, "string | number | null"],
    [
      "const and enum are literals",
      { enum: ["a", 1, null, { b: [true] }] },
      '"a" | 1 | null | { b: [true] }',
    ],
    ["items make an array", { type: "array", items: { type: ["string", "null"] } }, "(string | null)[]"],
    [
      "prefixItems make a tuple, optional beyond minItems",
      { prefixItems: [{ type: "string" }, { type: "number" }], minItems: 1, items: false },
      "[string, number?]",
    ],
    [
      "lists of items make a tuple in draft 7",
      { $schema: DRAFT_07, items: [{ type: "string" }], additionalItems: { type: "number" } },
      "[string?, ...number[]]",
    ],
    [
      "properties are optional unless required",
      { properties: { a: { type: "string", description: "The a." }, "b-c": true }, required: ["a", "d"] },
      '{\n  /** The a. */\n  a: string;\n  "b-c"?: unknown;\n  d: unknown;\n}',
    ],
    [
      "maps have an index",
      { type: "object", additionalProperties: { type: "number" } },
      "{ [key: string]: number }",
    ],
    [
      "combinations are unions and intersections",
      { allOf: [{ anyOf: [{ type: "string" }, { type: "null" }] }, { oneOf: [{ const: 1 }, { const: 2 }] }] },
      "(string | null) & (1 | 2)",
    ],
    ["unknown keywords and types are unknown", { tsType: "evil", type: "any" }, "unknown"],
    [
      "draft 7 ignores keywords next to $ref",
      { $schema: DRAFT_07, $ref: "#/definitions/a", type: "null", definitions: { a: true } },
      "unknown",
    ],
  ])("%s", (_, schema, expected) => {
    expect(typeOf(schema)).toBe(expected);
  });

  it("refers to shared and recursive parts by name", () => {
    const writer = createTypeWriter(MAX);
    writer.add(["main", "tree.changed"], {
      $defs: { node: { $anchor: "n", properties: { next: { $ref: "#n" }, root: { $ref: "#" } } } },
      type: "array",
      items: { $ref: "#/$defs/node" },
    });
    expect(writer.text()).toBe(
      "export type MainTreeChanged = MainTreeChangedNode[];\n\nexport type MainTreeChangedNode = {\n  next?: MainTreeChangedNode;\n  root?: MainTreeChanged;\n};\n",
    );
  });

  it("refers to itself in arrays, but not in arrays of optional and rest elements, which TypeScript evaluates at once", () => {
    const inArray = { items: { $ref: "#" } };
    expect(typeOf({ prefixItems: [inArray, { $ref: "#" }], minItems: 1 })).toBe("[X[], X?, ...unknown[]]");
    expect(typeOf({ prefixItems: [inArray], items: inArray })).toBe("[unknown[]?, ...unknown[][]]");
    expect(typeOf({ prefixItems: [{ properties: { a: inArray } }], items: false })).toContain("a?: X[]");
    const writer = createTypeWriter(MAX);
    const b = { prefixItems: [{ items: { $ref: "#" } }] };
    writer.add(["x"], { $defs: { b }, prefixItems: [{ items: { $ref: "#/$defs/b" } }] });
    expect(writer.text()).toBe("export type X = [unknown[]?, ...unknown[]];\n");
  });

  it("is unknown if the schema cannot be resolved", () => {
    for (const $ref of ["https://example.com/a.json", "#/$defs/none", "file:///etc/passwd"])
      expect(typeOf({ $ref })).toBe("unknown");
    expect(typeOf({ $schema: "http://json-schema.org/draft-04/schema" })).toBe("unknown");
  });

  it("is limited in depth and length", () => {
    let deep: JsonSchema = true;
    for (let n = 0; n < 1_000; n++) deep = { items: deep };
    expect(typeOf(deep)).toContain("unknown[]");
    const wide = { enum: Array.from({ length: 501 }, (_, n) => (n % 2 === 0 ? n : String(n))) };
    expect(typeOf(wide)).toBe("number | string");
    const properties = Object.fromEntries(Array.from({ length: 100_000 }, (_, n) => [`p${n}`, true]));
    expect(() => typeOf({ properties })).toThrow(TypesTooLongError);
  });
});

/** Compiles a module with strict settings. Returns the errors of the compiler. */
async function compile(source: string): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "inlet-types-"));
  try {
    await writeFile(join(dir, "types.ts"), source);
    const tsc = join(import.meta.dirname, "../../../node_modules/.bin/tsc");
    const args = [
      "--noEmit",
      "--strict",
      "--exactOptionalPropertyTypes",
      "--ignoreConfig",
      join(dir, "types.ts"),
    ];
    return await promisify(execFile)(tsc, args, { cwd: dir }).then(
      ({ stdout }) => stdout,
      ({ stdout }) => stdout as string,
    );
  } finally {
    await rm(dir, { recursive: true });
  }
}

const HOSTILE = [
  '"; export const evil = process.exit(1); //',
  "*/ export const evil = 1; /*",
  "`evil`",
  "a\nb\u2028c\u0000\u202e\ud800",
  "\\",
  "__proto__",
  "constructor",
  "class",
  "// @ts-nocheck",
  "@ts-expect-error",
  "\\u0022",
  "",
];

const hostile = fc.oneof(fc.constantFrom(...HOSTILE), fc.string({ unit: "binary", maxLength: 12 }));
const { schema: schemas } = fc.letrec<{ schema: JsonSchema }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 4 },
    fc.boolean(),
    fc.record({
      const: fc.oneof(
        hostile,
        fc.double(),
        fc.json().map((text) => JSON.parse(text)),
      ),
    }),
    fc.record({ $ref: fc.constantFrom("#", "#/$defs/a", "#/$defs/b") }),
    fc.record({ type: fc.constantFrom("string", "number", "null"), description: hostile }),
    fc.record({
      properties: fc.dictionary(hostile, tie("schema")),
      required: fc.array(hostile, { maxLength: 2 }),
    }),
    fc.record({ items: tie("schema"), description: hostile }),
    fc.record({ prefixItems: fc.array(tie("schema"), { minLength: 1, maxLength: 3 }), minItems: fc.nat(3) }),
    fc.record({
      additionalProperties: tie("schema"),
      patternProperties: fc.dictionary(hostile, tie("schema")),
    }),
    fc.record({ allOf: fc.array(tie("schema"), { minLength: 1, maxLength: 3 }) }),
    fc.record({
      anyOf: fc.array(tie("schema"), { minLength: 1, maxLength: 3 }),
      $ref: fc.constant("#/$defs/b"),
    }),
  ),
}));

describeDeep("the types of random schemas with hostile names and texts", () => {
  it("compile, and declare types only", async () => {
    const writer = createTypeWriter(100 * MAX);
    const samples = fc.sample(fc.record({ a: schemas, b: schemas, root: schemas, name: hostile }), 300);
    for (const { a, b, root, name } of samples) {
      const $defs = { a, b };
      writer.add(["channel", name], typeof root === "boolean" ? root : { ...root, $defs });
    }
    for (const text of HOSTILE)
      writer.add([text, text], {
        description: text,
        properties: { [text]: { const: text, description: text } },
      });
    const source = writer.text();
    expect(await compile(source)).toBe("");
    const statements = source.match(/^(?!export type |\/\*\* .* \*\/$| |\}|$).*/gm) ?? [];
    expect(statements).toEqual([]);
    expect(await compile(`${source}\nexport const wrong: ${"number"} = "";`)).toContain("TS2322");
  });
});
