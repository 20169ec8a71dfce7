import { Ajv, type ValidateFunction } from "ajv";
import addFormats from "ajv-formats";
import { expect, test } from "vitest";
import type { CompiledSchema, SchemaCompiler } from "../../src/lib/json-schema/compiled-schema.ts";
import { startSchemaCompiler } from "../../src/lib/json-schema/compiler.ts";
import { EVENT_NAMES, eventSchema, examples, unionSchema } from "../lib/json-schema/github.ts";

const CALLER = { lane: "a" };

const { signal } = new AbortController();

async function compileOrThrow(
  compiler: SchemaCompiler,
  schema: Record<string, unknown>,
): Promise<CompiledSchema> {
  const compiled = await compiler.compile(schema, { signal, lane: "a" });
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.error));
  return compiled.value;
}

function plainAjv(): (key: string) => ValidateFunction {
  const ajv = new Ajv({ strict: false });
  addFormats.default(ajv);
  ajv.addSchema(unionSchema(), "all");
  return (key) => {
    const validate = ajv.getSchema(key);
    if (!validate) throw new Error(`no schema ${key}`);
    return validate;
  };
}

test("all of GitHub's example payloads are validated against their event schemas with the same verdict as plain Ajv gives", async () => {
  await using compiler = startSchemaCompiler({ maxCompileCpuMs: 600_000, maxCheckCpuMs: 600_000 });
  const plain = plainAjv();
  const counts = { valid: 0, invalid: 0, here: 0, inWorker: 0 };
  for (const { event, payload } of examples()) {
    const answer = (await compileOrThrow(compiler, eventSchema(event))).validate(payload, CALLER);
    counts[answer instanceof Promise ? "inWorker" : "here"]++;
    const violation = await answer;
    const isValid = plain(`all#/definitions/${event}`)(payload) === true;
    counts[isValid ? "valid" : "invalid"]++;
    expect([event, violation === undefined]).toEqual([event, isValid]);
    if (violation) expect(violation.message).not.toBe("");
  }
  console.log("examples:", counts);
  expect(counts.valid + counts.invalid).toBeGreaterThan(300);
});

test("payloads are validated against a union of all GitHub schemas in a worker thread, with the same verdict as plain Ajv gives", async () => {
  await using compiler = startSchemaCompiler({ maxCompileCpuMs: 600_000, maxCheckCpuMs: 600_000 });
  const plain = plainAjv()("all");
  const union = await compileOrThrow(compiler, unionSchema());
  for (const { event, payload } of examples()) {
    const answer = union.validate(payload, CALLER);
    expect(answer).toBeInstanceOf(Promise);
    expect([event, (await answer) === undefined]).toEqual([event, plain(payload)]);
  }
});

// `npm run bench:normalize` measures how long a compilation blocks the event loop.
test("concurrent schema compilations run in separate iterations of the event loop", async () => {
  await using compiler = startSchemaCompiler({ maxCompileCpuMs: 600_000, maxCheckCpuMs: 600_000 });
  let turn = 0;
  let isDone = false;
  const count = (): void => {
    turn++;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  const turns = await Promise.all(
    EVENT_NAMES.map(async (name) => {
      await compileOrThrow(compiler, eventSchema(name));
      return turn;
    }),
  );
  isDone = true;
  expect(EVENT_NAMES.length).toBeGreaterThan(50);
  expect(new Set(turns).size).toBe(EVENT_NAMES.length);
});
