import { Ajv } from "ajv";
import addFormats from "ajv-formats";
import { expect, test } from "vitest";
import { startSchemaCompiler } from "../../../src/lib/json-schema/compiler.ts";
import { CEILING_MS } from "../../support/until.ts";
import { EVENT_NAMES, eventSchema, examples, unionSchema } from "./github.ts";

// `test/deep/github-schemas.test.ts` takes all examples; `npm run bench:schemas` measures how long the event loop is held up.
const { signal } = new AbortController();
/** Of the events in order of their names, this many apart; and one of the largest. */
const STEP = 8;
const SOME = EVENT_NAMES.filter((name, at) => at % STEP === 0 || name === "pull_request_event");

test("concurrent compilations of GitHub's schemas each take their own event loop turn", async () => {
  await using compiler = startSchemaCompiler({ compileTimeoutMs: CEILING_MS, validateTimeoutMs: CEILING_MS });
  let turn = 0;
  let isDone = false;
  const count = (): void => {
    turn++;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  const turns = await Promise.all(
    SOME.map(async (name) => {
      expect((await compiler.compile(eventSchema(name), { signal })).ok).toBe(true);
      return turn;
    }),
  );
  isDone = true;
  expect(SOME.length).toBeGreaterThan(5);
  expect(new Set(turns).size).toBe(SOME.length);
});

test("GitHub's examples are valid or invalid as they are to plain Ajv", async () => {
  await using compiler = startSchemaCompiler({ compileTimeoutMs: CEILING_MS, validateTimeoutMs: CEILING_MS });
  const ajv = new Ajv({ strict: false });
  addFormats.default(ajv);
  ajv.addSchema(unionSchema(), "all");
  const counts = { valid: 0, invalid: 0 };
  for (const { event, payload } of examples().filter((one) => SOME.includes(one.event))) {
    const compiled = await compiler.compile(eventSchema(event), { signal });
    if (!compiled.ok) throw new Error(JSON.stringify(compiled.error));
    const isValid = ajv.getSchema(`all#/definitions/${event}`)?.(payload);
    counts[isValid ? "valid" : "invalid"]++;
    const violation = await compiled.value.validate(payload);
    expect([event, violation === undefined]).toEqual([event, isValid]);
    if (violation) expect(violation.message).not.toBe("");
  }
  console.log("examples:", counts);
  expect(counts.valid).toBeGreaterThan(20);
});
