import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { UnavailableError } from "../../../src/lib/errors.ts";
import type {
  CompiledSchema,
  JsonSchema,
  SchemaCompiler,
} from "../../../src/lib/json-schema/compiled-schema.ts";
import { startSchemaCompiler } from "../../../src/lib/json-schema/compiler.ts";
import { itDeep } from "../../support/deep-run.ts";
import { CEILING_MS } from "../../support/until.ts";

const CALLER = { lane: "a" };

const DRAFT_07 = "http://json-schema.org/draft-07/schema#";
const { signal } = new AbortController();
let compiler: SchemaCompiler;

beforeAll(() => {
  compiler = startSchemaCompiler({ maxCompileCpuMs: CEILING_MS, maxCheckCpuMs: CEILING_MS });
});
afterAll(() => compiler[Symbol.asyncDispose]());

async function compiled(schema: JsonSchema, target = compiler): Promise<CompiledSchema> {
  const result = await target.compile(schema, { signal, lane: "a" });
  if (!result.ok) throw new Error(JSON.stringify(result.error));
  return result.value;
}

const validate = async (schema: JsonSchema, value: unknown) =>
  (await compiled(schema)).validate(value, CALLER);

async function findings(schema: JsonSchema, target = compiler) {
  const result = await target.compile(schema, { signal, lane: "a" });
  return result.ok ? [] : result.error;
}

test.each<[string, JsonSchema, unknown, string, string]>([
  ["type", { properties: { a: { items: { type: "integer" } } } }, { a: [1, "x"] }, "/a/1", "must be integer"],
  ["required", { required: ["a"] }, {}, "", "must have required property 'a'"],
  ["names with / and ~", { properties: { "a/~": { type: "null" } } }, { "a/~": 1 }, "/a~1~0", "must be null"],
  [
    "additionalProperties",
    { additionalProperties: false },
    { x: 1 },
    "",
    'must NOT have additional properties: "x"',
  ],
  ["unevaluatedProperties", { unevaluatedProperties: false }, { y: 1 }, "", '"y"'],
  ["propertyNames", { propertyNames: { maxLength: 1 } }, { xyz: 1 }, "", '"xyz"'],
  ["enum", { enum: [1, "b", null, 4, 5, 6, 7] }, 0, "", 'must be one of 1, "b", null, 4, 5 and 2 more'],
  ["const", { const: { a: 1 } }, 0, "", 'must be {"a":1}'],
  ["pattern", { pattern: "^a+$" }, "b", "", 'must match pattern "^a+$"'],
  ["patternProperties", { patternProperties: { "^a": { type: "null" } } }, { ab: 1 }, "/ab", "must be null"],
  ["format", { format: "date-time" }, "2024-02-30T00:00:00Z", "", 'must match format "date-time"'],
  [
    "anyOf",
    { anyOf: [{ type: "string" }, { properties: { a: { type: "null" } } }] },
    { a: 1 },
    "",
    "/a must be null",
  ],
  [
    "then",
    JSON.parse('{"if": true, "then": {"properties": {"a": {"type": "null"}}}}'),
    { a: 1 },
    "/a",
    "must be null",
  ],
  ["uniqueItems", { uniqueItems: true }, [{ a: 1 }, { a: 1 }], "", "must NOT have duplicate items"],
  ["false", false, 1, "", "not allowed"],
  ["draft-07 items", { $schema: DRAFT_07, items: [{ type: "null" }] }, [1], "/0", "must be null"],
  ["2020-12 prefixItems", { prefixItems: [{ type: "null" }] }, [1], "/0", "must be null"],
  [
    "a property with an inherited name of Object",
    { properties: { constructor: { type: "null" } } },
    { constructor: 1 },
    "/constructor",
    "must be null",
  ],
])("a validator reports the path of a violation and the expected value: %s", async (_, schema, value, path, message) => {
  const violation = await validate(schema, value);
  expect(violation?.path).toBe(path);
  expect(violation?.message).toContain(message);
});

test.each<[string, JsonSchema, unknown]>([
  ["true", true, 1],
  [
    "unknown keywords are annotations",
    { id: "x", $comment: "", example: 1, "x-y": {}, nullables: [], toString: 1 },
    1,
  ],
  ["unknown formats are annotations", { format: "toString" }, "x"],
  ["missing property with an inherited name", { properties: { constructor: { type: "null" } } }, {}],
  ["local references", { $defs: { a: { type: "null" } }, $ref: "#/$defs/a" }, null],
  ["local URIs", { $id: "https://x.example/s", $defs: { a: { $id: "a", type: "null" } }, $ref: "a" }, null],
  [
    "definitions with inherited names of Object",
    { $ref: "#/$defs/constructor", $defs: { constructor: true } },
    1,
  ],
  ["anchors", { $defs: { a: { $anchor: "here", type: "null" } }, $ref: "#here" }, null],
  ["recursion", { properties: { a: { $ref: "#" } }, type: "object" }, { a: { a: {} } }],
  [
    "draft-07 without #",
    { $schema: DRAFT_07.slice(0, -1), definitions: { a: true }, $ref: "#/definitions/a" },
    1,
  ],
  ["characters outside the BMP", { maxLength: 1, pattern: "^.$" }, "😀"],
])("a validator accepts a valid value: %s", async (_, schema, value) => {
  expect(await validate(schema, value)).toBeUndefined();
});

test.each<[string, JsonSchema, string, string]>([
  [
    "an unknown type",
    { properties: { a: { type: "strnig" } } },
    "/properties/a/type",
    'must be one of "array"',
  ],
  ["draft-07's items list in 2020-12", { items: [true] }, "/items", "must be object,boolean"],
  ["another draft", { $schema: "http://json-schema.org/draft-04/schema#" }, "/$schema", "draft-07"],
  [
    "a remote reference",
    { items: { $ref: "https://x.example/s.json" } },
    "/items/$ref",
    '"https://x.example/s.json"',
  ],
  [
    "a reference to a missing definition",
    { items: { $ref: "#/$defs/no" } },
    "/items/$ref",
    '"#/$defs/no" does not exist',
  ],
  [
    "a reference to a name inherited from Object",
    { $ref: "toString" },
    "/$ref",
    "does not point into this schema",
  ],
  [
    "a pointer to a name inherited from Object",
    { $ref: "#/$defs/toString", $defs: {} },
    "/$ref",
    "does not exist",
  ],
  [
    "a reference to itself",
    { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/a" } } },
    "",
    "endless reference",
  ],
  ["look-around", { properties: { a: { pattern: "(?=a)" } } }, "/properties/a/pattern", "look-around"],
  [
    "a back-reference",
    { patternProperties: { "(a)\\1": true } },
    "/patternProperties/(a)\\1",
    "back-reference",
  ],
  ["an invalid regular expression", { pattern: "(" }, "/pattern", "Unterminated group"],
  ["$async", { $async: true }, "/$async", "not supported"],
])("the schema compiler rejects a schema with %s, and reports the path and the reason", async (_, schema, path, message) => {
  const found = await findings(schema);
  expect(found[0]?.path).toBe(path);
  expect(found[0]?.message).toContain(message);
});

test("the schema compiler reports each location that violates the meta-schema once", async () => {
  const found = await findings({ required: "a", properties: { b: { minLength: -1 } } });
  expect(found.map(({ path }) => path).sort()).toEqual(["/properties/b/minLength", "/required"]);
});

test("a validator matches a pattern such as ^(a+)+$ in linear time, on the calling thread", async () => {
  const schema = await compiled({ pattern: "^(a+)+$" });
  // A backtracking engine tries 2^60 paths.
  const result = schema.validate(`${"a".repeat(60)}!`, CALLER);
  expect(result).toMatchObject({ path: "" });
  expect(result).not.toBeInstanceOf(Promise);
});

test("a validator runs in the worker if its schema is expensive, and otherwise on the calling thread", async () => {
  const doubled = (levels: number): JsonSchema => {
    const $defs: Record<string, JsonSchema> = { d0: { type: "integer" } };
    for (let i = 1; i <= levels; i++) {
      const $ref = `#/$defs/d${i - 1}`;
      $defs[`d${i}`] = { allOf: [{ $ref }, { $ref }] };
    }
    return { $defs, $ref: `#/$defs/d${levels}` };
  };
  expect((await compiled(doubled(2))).validate(1, CALLER)).toBeUndefined();
  const costly = await compiled(doubled(16));
  for (const [value, verdict] of [
    [1, undefined],
    ["a", expect.objectContaining({ path: "" })],
  ]) {
    const result = costly.validate(value, CALLER);
    expect(result).toBeInstanceOf(Promise);
    expect(await result).toEqual(verdict);
  }
});

test("a validator runs in the worker if matching a pattern against the text could take long", async () => {
  const schema = await compiled({ pattern: "(a|b)*a(a|b){30}[cd]" });
  expect(schema.validate("ab", CALLER)).not.toBeInstanceOf(Promise);
  const result = schema.validate("ab".repeat(50_000), CALLER);
  expect(result).toBeInstanceOf(Promise);
  expect(await result).toMatchObject({ path: "" });
});

test("a validator checks the format url in linear time", async () => {
  const schema = await compiled({ format: "url" });
  for (const text of ["http://a.example/x?y", "ftp://u:p@a.example:21/@", "http://8.8.8.8"]) {
    expect(schema.validate(text, CALLER)).toBeUndefined();
  }
  for (const text of [
    "http://",
    "http://@a.example",
    "http://10.0.0.1",
    "mailto:a@b.example",
    "http://a b.example",
  ]) {
    expect(schema.validate(text, CALLER)).toBeDefined();
  }
  // Quadratic time would take hours.
  expect(schema.validate(`http://a.${":".repeat(2_000_000)} `, CALLER)).toBeDefined();
  expect(schema.validate(`http://${"a@a.aa/".repeat(300_000)} `, CALLER)).toBeDefined();
});

/** A small schema that applies a subschema to one value 2^40 times. */
const exponential = (): JsonSchema => {
  const $defs: Record<string, JsonSchema> = { d0: { type: "null" } };
  for (let i = 1; i <= 40; i++) {
    const $ref = `#/$defs/d${i - 1}`;
    $defs[`d${i}`] = { anyOf: [{ allOf: [{ $ref }, { maximum: 1 }] }, { $ref }] };
  }
  return { $defs, $ref: "#/$defs/d40" };
};

test("a validator rejects a value whose validation takes too much CPU time, and then validates the next values", async () => {
  await using own = startSchemaCompiler({ maxCheckCpuMs: 250 });
  const endless = await compiled(exponential(), own);
  const recursive = await compiled({ type: ["object", "null"], properties: { a: { $ref: "#" } } }, own);
  const [slow, good, bad] = await Promise.all([
    endless.validate(7, CALLER),
    recursive.validate({ a: null }, CALLER),
    recursive.validate({ a: 1 }, CALLER),
  ]);
  expect(slow?.message).toContain("too much CPU time");
  expect(good).toBeUndefined();
  expect(bad?.path).toBe("/a");
});

/** Takes more than 0.1 s to compile per thousand members. */
const wide = (name: string, members: number): JsonSchema => ({
  properties: Object.fromEntries(
    Array.from({ length: members }, (_, i) => [`${name}${i}`, { type: "string" }]),
  ),
});

itDeep(
  "the schema compiler rejects a schema that takes too much CPU time, and then compiles the next schemas",
  async () => {
    await using own = startSchemaCompiler({ maxCompileCpuMs: 250 });
    const [slow, good] = await Promise.all([
      own.compile(wide("p", 12_000), { signal, lane: "a" }),
      own.compile({ type: "null", title: "long".repeat(3_000) }, { signal, lane: "a" }),
    ]);
    expect(slow).toMatchObject({
      ok: false,
      error: [{ path: "", message: expect.stringContaining("too much CPU time") }],
    });
    expect(good?.ok).toBe(true);
  },
);

itDeep(
  "the schema compiler compiles a schema soon, even if another organization has queued many large schemas",
  async () => {
    await using own = startSchemaCompiler();
    const done: string[] = [];
    const compile = async (name: string, schema: JsonSchema, lane: string): Promise<void> => {
      const result = await own.compile(schema, { signal, lane });
      if (result.ok) done.push(name);
    };
    // Each is longer than the 8 kB limit of short schemas.
    const many = Array.from({ length: 16 }, (_, i) => compile(`many${i}`, wide(`m${i}_`, 600), "a"));
    const others = Promise.allSettled(many);
    await Promise.all([compile("tiny", { const: "tiny" }, "b"), compile("large", wide("l", 600), "b")]);
    // Only the job in flight and one more of the other organization run before.
    expect(done.indexOf("tiny")).toBeLessThanOrEqual(2);
    expect(done.indexOf("large")).toBeLessThanOrEqual(3);
    await own[Symbol.asyncDispose]();
    await others;
  },
);

test.each<[string, JsonSchema, string]>([
  ["with many characters", { title: "x".repeat(600_000) }, "has more than 524288 characters"],
  ["with a high cost", exponential(), "applies subschemas to one value up to"],
])("a schema %s still compiles if it is already stored, but is rejected in new settings", async (_, schema, message) => {
  expect((await compiler.compile(schema, { signal, lane: "a" })).ok).toBe(true);
  const [finding] = await compiler.check(schema, { signal, lane: "a" });
  expect(finding).toMatchObject({ path: "", message: expect.stringContaining(message) });
});

test("the schema compiler does not let a caller wait in another organization's queue for the same schema", async () => {
  await using own = startSchemaCompiler();
  const done: string[] = [];
  const compile = async (name: string, schema: JsonSchema, lane: string): Promise<void> => {
    const result = await own.compile(schema, { signal, lane });
    if (result.ok) done.push(name);
  };
  const same = (): JsonSchema => wide("same", 600);
  const many = Array.from({ length: 12 }, (_, i) => compile(`many${i}`, wide(`m${i}_`, 600), "a"));
  const others = Promise.allSettled(many);
  await Promise.all([compile("theirs", same(), "a"), compile("ours", same(), "b")]);
  expect(done.filter((name) => !name.startsWith("many")).sort()).toEqual(["ours", "theirs"]);
  expect(done.length).toBeLessThanOrEqual(6);
  await own[Symbol.asyncDispose]();
  await others;
});

test("the schema compiler compiles a schema even if another organization requested it and exceeded its job limit", async () => {
  await using own = startSchemaCompiler();
  const many = Array.from({ length: 1_010 }, (_, i) =>
    own.compile({ const: `many${i}` }, { signal, lane: "a" }),
  );
  const others = Promise.allSettled(many);
  const same = { const: "same" };
  const theirs = Promise.allSettled([own.compile({ ...same }, { signal, lane: "a" })]);
  const ours = own.compile(same, { signal, lane: "b" });
  // Schemas are processed in call order, so when this one is rejected, both others are queued.
  expect(await own.check({ title: "x".repeat(600_000) }, { signal, lane: "c" })).toHaveLength(1);
  expect((await ours).ok).toBe(true);
  expect(await theirs).toMatchObject([{ status: "rejected", reason: expect.any(UnavailableError) }]);
  await own[Symbol.asyncDispose]();
  await others;
});

test("the schema compiler rejects a schema that is nested too deeply", async () => {
  let deep: JsonSchema = {};
  for (let i = 0; i < 20_000; i++) deep = { not: deep };
  expect((await findings(deep))[0]?.message).toContain("too deeply");
});

test("the schema compiler caches validators by schema object, and does not compile equal schemas twice", async () => {
  const schema = { type: "object", properties: { a: { type: "integer" } } };
  expect(compiler.peek(schema)).toBeUndefined();
  const [first, second] = await Promise.all([compiled(schema), compiled(structuredClone(schema))]);
  expect(second).toBe(first);
  expect(compiler.peek(schema)).toBe(first);
  expect(await compiled({ properties: { a: { type: "integer" } }, type: "object" })).toBe(first);
  expect(compiler.peek(true)?.validate(1, CALLER)).toBeUndefined();
});

test("the cache of compiled validators evicts entries if their code exceeds the limit", async () => {
  await using own = startSchemaCompiler({ maxCodeLength: 4_000 });
  const schemas = Array.from({ length: 10 }, (_, i) => ({ type: "object", required: [`p${i}`] }));
  for (const schema of schemas) await compiled(schema, own);
  const warm = schemas.filter((schema) => own.peek(schema) !== undefined);
  expect(warm.length).toBeGreaterThan(0);
  expect(warm.length).toBeLessThan(10);
  expect(own.peek(schemas.at(-1) ?? true)).toBeDefined();
});

test("the schema compiler rejects a pending compilation if the caller's signal aborts", async () => {
  const controller = new AbortController();
  const waiting = compiler.compile({ title: "aborted" }, { signal: controller.signal, lane: "a" });
  controller.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
});

test("a closed schema compiler rejects new and pending jobs with UnavailableError", async () => {
  const own = startSchemaCompiler();
  const recursive = await compiled({ properties: { a: { $ref: "#" } } }, own);
  const waiting = own.compile({ title: "pending" }, { signal, lane: "a" });
  const rejected = expect(waiting).rejects.toThrow(UnavailableError);
  await own[Symbol.asyncDispose]();
  await rejected;
  await expect(recursive.validate({}, CALLER)).rejects.toThrow(UnavailableError);
});

itDeep(
  "an idle schema compiler does not keep the process alive, and loads the code generator only in its worker",
  async () => {
    const source = `
    import { Module } from "node:module";
    import { startSchemaCompiler } from ${JSON.stringify(new URL("../../../src/lib/json-schema/compiler.ts", import.meta.url).href)};
    const compiler = startSchemaCompiler();
    const { signal } = new AbortController();
    const compiled = await compiler.compile({ $ref: "#/$defs/a", $defs: { a: { properties: { a: { $ref: "#/$defs/a" } } } } }, { signal, lane: "a" });
    const loaded = Object.keys(Module._cache).filter((file) => /ajv\\/dist\\/(core|compile\\/index)\\.js$/.test(file));
    console.log(compiled.ok, await compiled.value.validate({}, { lane: "a" }), loaded.length);`;
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", source], {
      timeout: CEILING_MS,
    });
    expect(stdout.trim()).toBe("true undefined 0");
  },
);
