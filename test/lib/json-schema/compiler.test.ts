import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { UnavailableError } from "../../../src/lib/errors.ts";
import type {
  CompiledSchema,
  JsonSchema,
  SchemaCompiler,
} from "../../../src/lib/json-schema/compiled-schema.ts";
import { startSchemaCompiler } from "../../../src/lib/json-schema/compiler.ts";
import { CEILING_MS } from "../../support/until.ts";

const DRAFT_07 = "http://json-schema.org/draft-07/schema#";
const { signal } = new AbortController();
let compiler: SchemaCompiler;

beforeAll(() => {
  compiler = startSchemaCompiler({ compileTimeoutMs: CEILING_MS, validateTimeoutMs: CEILING_MS });
});
afterAll(() => compiler[Symbol.asyncDispose]());

async function compiled(schema: JsonSchema, by = compiler): Promise<CompiledSchema> {
  const result = await by.compile(schema, { signal });
  if (!result.ok) throw new Error(JSON.stringify(result.error));
  return result.value;
}

const validate = async (schema: JsonSchema, value: unknown) => (await compiled(schema)).validate(value);

async function findings(schema: JsonSchema, by = compiler) {
  const result = await by.compile(schema, { signal });
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
    "a property like one of Object's",
    { properties: { constructor: { type: "null" } } },
    { constructor: 1 },
    "/constructor",
    "must be null",
  ],
])("a violation of %s names its place and the expected value", async (_, schema, value, path, message) => {
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
  ["an absent property like one of Object's", { properties: { constructor: { type: "null" } } }, {}],
  ["local references", { $defs: { a: { type: "null" } }, $ref: "#/$defs/a" }, null],
  [
    "local addresses",
    { $id: "https://x.example/s", $defs: { a: { $id: "a", type: "null" } }, $ref: "a" },
    null,
  ],
  [
    "definitions named like one of Object's",
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
  ["letters beyond one UTF-16 unit", { maxLength: 1, pattern: "^.$" }, "😀"],
])("%s: the value is valid", async (_, schema, value) => {
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
  ["a reference to nothing", { items: { $ref: "#/$defs/no" } }, "/items/$ref", '"#/$defs/no" leads nowhere'],
  ["a reference to Object's own", { $ref: "toString" }, "/$ref", "is not part of this schema"],
  ["a pointer to Object's own", { $ref: "#/$defs/toString", $defs: {} }, "/$ref", "leads nowhere"],
  ["a reference to itself", { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/a" } } }, "", "without end"],
  ["look-around", { properties: { a: { pattern: "(?=a)" } } }, "/properties/a/pattern", "look-around"],
  [
    "a back-reference",
    { patternProperties: { "(a)\\1": true } },
    "/patternProperties/(a)\\1",
    "back-reference",
  ],
  ["no regular expression", { pattern: "(" }, "/pattern", "Unterminated group"],
  ["$async", { $async: true }, "/$async", "not supported"],
])("%s is refused with its place and reason", async (_, schema, path, message) => {
  const found = await findings(schema);
  expect(found[0]?.path).toBe(path);
  expect(found[0]?.message).toContain(message);
});

test("the place of every finding of the meta-schema is told, once", async () => {
  const found = await findings({ required: "a", properties: { b: { minLength: -1 } } });
  expect(found.map(({ path }) => path).sort()).toEqual(["/properties/b/minLength", "/required"]);
});

test("a pattern that would backtrack for ever elsewhere is answered on this thread", async () => {
  const schema = await compiled({ pattern: "^(a+)+$" });
  // An engine that backtracks tries 2^60 ways.
  const answer = schema.validate(`${"a".repeat(60)}!`);
  expect(answer).toMatchObject({ path: "" });
  expect(answer).not.toBeInstanceOf(Promise);
});

test("a schema that is costly to apply is checked in the worker, a cheap one on this thread", async () => {
  const doubled = (levels: number): JsonSchema => {
    const $defs: Record<string, JsonSchema> = { d0: { type: "integer" } };
    for (let i = 1; i <= levels; i++) {
      const $ref = `#/$defs/d${i - 1}`;
      $defs[`d${i}`] = { allOf: [{ $ref }, { $ref }] };
    }
    return { $defs, $ref: `#/$defs/d${levels}` };
  };
  expect((await compiled(doubled(2))).validate(1)).toBeUndefined();
  const costly = await compiled(doubled(16));
  for (const [value, verdict] of [
    [1, undefined],
    ["a", expect.objectContaining({ path: "" })],
  ]) {
    const answer = costly.validate(value);
    expect(answer).toBeInstanceOf(Promise);
    expect(await answer).toEqual(verdict);
  }
});

test("a text on which patterns could take long goes to the worker", async () => {
  const schema = await compiled({ pattern: "(a|b)*a(a|b){30}[cd]" });
  expect(schema.validate("ab")).not.toBeInstanceOf(Promise);
  const answer = schema.validate("ab".repeat(50_000));
  expect(answer).toBeInstanceOf(Promise);
  expect(await answer).toMatchObject({ path: "" });
});

test("the format url takes no more than linear time", async () => {
  const schema = await compiled({ format: "url" });
  for (const text of ["http://a.example/x?y", "ftp://u:p@a.example:21/@", "http://8.8.8.8"]) {
    expect(schema.validate(text)).toBeUndefined();
  }
  for (const text of [
    "http://",
    "http://@a.example",
    "http://10.0.0.1",
    "mailto:a@b.example",
    "http://a b.example",
  ]) {
    expect(schema.validate(text)).toBeDefined();
  }
  // Quadratic time would be hours.
  expect(schema.validate(`http://a.${":".repeat(2_000_000)} `)).toBeDefined();
  expect(schema.validate(`http://${"a@a.aa/".repeat(300_000)} `)).toBeDefined();
});

/** Small on paper, 2^40 applications of a subschema to one value. */
const exponential = (): JsonSchema => {
  const $defs: Record<string, JsonSchema> = { d0: { type: "null" } };
  for (let i = 1; i <= 40; i++) {
    const $ref = `#/$defs/d${i - 1}`;
    $defs[`d${i}`] = { anyOf: [{ allOf: [{ $ref }, { maximum: 1 }] }, { $ref }] };
  }
  return { $defs, $ref: "#/$defs/d40" };
};

/** The timers of this thread stand still, so that no job runs out of time but by `endJob`. */
function holdTimers(jobTimeoutMs: number) {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  // Not a spy: `vi.restoreAllMocks` would put this fake back.
  const held = globalThis.setTimeout;
  let armed = 0;
  const counting = (run: () => void, ms?: number, ...args: []) => {
    if (ms === jobTimeoutMs) armed++;
    return held(run, ms, ...args);
  };
  globalThis.setTimeout = Object.assign(counting, held);
  return {
    /** Ends the time of the job that is the nth which a worker has taken, as soon as it has. */
    async endJob(n: number): Promise<void> {
      while (armed < n) await new Promise((resolve) => setImmediate(resolve));
      vi.advanceTimersByTime(jobTimeoutMs);
    },
    [Symbol.dispose]() {
      globalThis.setTimeout = held;
      vi.useRealTimers();
    },
  };
}

test("a value that takes too long is in violation, and those behind it are answered", async () => {
  using timers = holdTimers(4_321);
  await using own = startSchemaCompiler({ validateTimeoutMs: 4_321 });
  const endless = await compiled(exponential(), own);
  const recursive = await compiled({ type: ["object", "null"], properties: { a: { $ref: "#" } } }, own);
  const answers = [endless.validate(7), recursive.validate({ a: null }), recursive.validate({ a: 1 })];
  // The worker first says of each value that it does not know the schema; then it takes the endless one.
  await timers.endJob(4);
  const [slow, good, bad] = await Promise.all(answers);
  expect(slow?.message).toContain("too much time");
  expect(good).toBeUndefined();
  expect(bad?.path).toBe("/a");
});

test("a schema that takes too long to compile is refused, and those behind it are compiled", async () => {
  using timers = holdTimers(4_321);
  await using own = startSchemaCompiler({ compileTimeoutMs: 4_321 });
  const properties = Object.fromEntries(
    Array.from({ length: 60_000 }, (_, i) => [`p${i}`, { type: "string" }]),
  );
  const results = [own.compile({ properties }, { signal }), own.compile({ type: "null" }, { signal })];
  await timers.endJob(1);
  const [slow, good] = await Promise.all(results);
  expect(slow).toMatchObject({
    ok: false,
    error: [{ path: "", message: expect.stringContaining("too much time") }],
  });
  expect(good?.ok).toBe(true);
});

test("a schema that is nested too deeply is refused", async () => {
  let deep: JsonSchema = {};
  for (let i = 0; i < 20_000; i++) deep = { not: deep };
  expect((await findings(deep))[0]?.message).toContain("too deeply");
});

test("a compiled schema is found by its object; an equal one is not compiled again", async () => {
  const schema = { type: "object", properties: { a: { type: "integer" } } };
  expect(compiler.peek(schema)).toBeUndefined();
  const [first, second] = await Promise.all([compiled(schema), compiled(structuredClone(schema))]);
  expect(second).toBe(first);
  expect(compiler.peek(schema)).toBe(first);
  expect(await compiled({ properties: { a: { type: "integer" } }, type: "object" })).toBe(first);
  expect(compiler.peek(true)?.validate(1)).toBeUndefined();
});

test("the cache is bounded by the code that it holds", async () => {
  await using own = startSchemaCompiler({ maxCodeLength: 4_000 });
  const schemas = Array.from({ length: 10 }, (_, i) => ({ type: "object", required: [`p${i}`] }));
  for (const schema of schemas) await compiled(schema, own);
  const warm = schemas.filter((schema) => own.peek(schema) !== undefined);
  expect(warm.length).toBeGreaterThan(0);
  expect(warm.length).toBeLessThan(10);
  expect(own.peek(schemas.at(-1) ?? true)).toBeDefined();
});

test("waiting for a compilation ends with its signal", async () => {
  const controller = new AbortController();
  const waiting = compiler.compile({ title: "aborted" }, { signal: controller.signal });
  controller.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
});

test("a closed compiler is unavailable, and so are its jobs under way", async () => {
  const own = startSchemaCompiler();
  const recursive = await compiled({ properties: { a: { $ref: "#" } } }, own);
  const waiting = own.compile({ title: "under way" }, { signal });
  const refused = expect(waiting).rejects.toThrow(UnavailableError);
  await own[Symbol.asyncDispose]();
  await refused;
  await expect(recursive.validate({})).rejects.toThrow(UnavailableError);
});

test("an idle compiler does not keep its process alive; the main thread never loads the compiling code", async () => {
  const source = `
    import { Module } from "node:module";
    import { startSchemaCompiler } from ${JSON.stringify(new URL("../../../src/lib/json-schema/compiler.ts", import.meta.url).href)};
    const compiler = startSchemaCompiler();
    const { signal } = new AbortController();
    const compiled = await compiler.compile({ $ref: "#/$defs/a", $defs: { a: { properties: { a: { $ref: "#/$defs/a" } } } } }, { signal });
    const loaded = Object.keys(Module._cache).filter((file) => /ajv\\/dist\\/(core|compile\\/index)\\.js$/.test(file));
    console.log(compiled.ok, await compiled.value.validate({}), loaded.length);`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", source], {
    timeout: CEILING_MS,
  });
  expect(stdout.trim()).toBe("true undefined 0");
});
