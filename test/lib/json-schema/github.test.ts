import { monitorEventLoopDelay } from "node:perf_hooks";
import { Ajv } from "ajv";
import addFormats from "ajv-formats";
import { expect, test } from "vitest";
import { startSchemaCompiler } from "../../../src/lib/json-schema/compiler.ts";
import { EVENT_NAMES, eventSchema, examples, unionSchema } from "./github.ts";

const MAX_STALL_MS = 50;
const { signal } = new AbortController();

/** The longest that the event loop did not turn while the work was under way, in milliseconds. */
async function longestStall(work: () => Promise<unknown>): Promise<number> {
  // Whatever stood before is not the work's.
  await new Promise((resolve) => setImmediate(resolve));
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  await work();
  await new Promise((resolve) => setTimeout(resolve, 5));
  delay.disable();
  return delay.max / 1e6;
}

// Repeated where another process held the machine: a stall of our own is there each time.
test.for([
  "one after the other",
  "all at once",
])("compiling a validator for each event of GitHub does not hold up the event loop: %s", {
  retry: 3,
  timeout: 60_000,
}, async (way) => {
  await using compiler = startSchemaCompiler();
  const schemas = EVENT_NAMES.map(eventSchema);
  const compile = async (schema: Record<string, unknown>) =>
    expect((await compiler.compile(schema, { signal })).ok).toBe(true);
  const before = performance.now();
  const stall = await longestStall(async () => {
    if (way === "all at once") await Promise.all(schemas.map(compile));
    else for (const schema of schemas) await compile(schema);
  });
  const tookMs = Math.round(performance.now() - before);
  console.log(`${way}: ${schemas.length} schemas in ${tookMs} ms, longest stall ${stall.toFixed(1)} ms`);
  expect(stall).toBeLessThan(MAX_STALL_MS);
});

test("the union of all events is compiled, and checks examples, without holding up the event loop", {
  retry: 3,
  timeout: 60_000,
}, async () => {
  await using compiler = startSchemaCompiler({ validateTimeoutMs: 20_000 });
  const payloads = examples().slice(0, 20);
  const schema = unionSchema();
  const stall = await longestStall(async () => {
    const compiled = await compiler.compile(schema, { signal });
    if (!compiled.ok) throw new Error(JSON.stringify(compiled.error));
    for (const { payload } of payloads) {
      const answer = compiled.value.validate(payload);
      expect(answer).toBeInstanceOf(Promise);
      await answer;
    }
  });
  console.log(`union: longest stall ${stall.toFixed(1)} ms`);
  expect(stall).toBeLessThan(MAX_STALL_MS);
});

test("all examples of GitHub are valid or invalid as they are to plain Ajv", {
  timeout: 60_000,
}, async () => {
  await using compiler = startSchemaCompiler();
  const ajv = new Ajv({ strict: false });
  addFormats.default(ajv);
  ajv.addSchema(unionSchema(), "all");
  const counts = { valid: 0, invalid: 0, here: 0, inWorker: 0 };
  for (const { event, payload } of examples()) {
    const plain = ajv.getSchema(`all#/definitions/${event}`);
    if (!plain) throw new Error(`no schema for ${event}`);
    const compiled = await compiler.compile(eventSchema(event), { signal });
    if (!compiled.ok) throw new Error(JSON.stringify(compiled.error));
    const answer = compiled.value.validate(payload);
    counts[answer instanceof Promise ? "inWorker" : "here"]++;
    const violation = await answer;
    const isValid = plain(payload);
    counts[isValid ? "valid" : "invalid"]++;
    expect([event, violation === undefined]).toEqual([event, isValid]);
    if (violation) expect(violation.message).not.toBe("");
  }
  console.log("examples:", counts);
  expect(counts.valid + counts.invalid).toBeGreaterThan(300);
});
