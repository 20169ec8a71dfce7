import { expect, test } from "vitest";
import { startSchemaCompiler } from "../../../src/lib/json-schema/compiler.ts";
import { CEILING_MS } from "../../support/until.ts";
import { EVENT_NAMES, eventSchema } from "./github.ts";

// `test/e2e/github.test.ts` holds some verdicts against plain Ajv, `test/deep/github-schemas.test.ts` all; `npm run bench:schemas` measures how long the event loop is held up.
const { signal } = new AbortController();
/** Of the events in order of their names, this many apart; and one of the largest. */
const STEP = 8;
const SOME = EVENT_NAMES.filter((name, at) => at % STEP === 0 || name === "pull_request_event");

test("concurrent compilations of GitHub's schemas each take their own event loop turn", async () => {
  await using compiler = startSchemaCompiler({ maxCompileCpuMs: CEILING_MS, maxCheckCpuMs: CEILING_MS });
  let turn = 0;
  let isDone = false;
  const count = (): void => {
    turn++;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  const turns = await Promise.all(
    SOME.map(async (name) => {
      expect((await compiler.compile(eventSchema(name), { signal, lane: "a" })).ok).toBe(true);
      return turn;
    }),
  );
  isDone = true;
  expect(SOME.length).toBeGreaterThan(5);
  expect(new Set(turns).size).toBe(SOME.length);
});
