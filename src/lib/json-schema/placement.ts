import type { CompiledSchema, SchemaViolation } from "./compiled-schema.ts";
import { evaluateCode, PatternBudgetError } from "./evaluate.ts";
import type { WorkerLane } from "./worker-lane.ts";

/** In characters × instructions: 50 ms at the very worst, and more than most values ever need. */
const PATTERN_BUDGET_HERE = 1_000_000;

/** A schema that is checked on this thread; a value whose patterns would hold it up goes to the worker. */
export function schemaHere(digest: string, code: string, worker: WorkerLane): CompiledSchema {
  const check = evaluateCode(code, { patternBudget: PATTERN_BUDGET_HERE });
  const elsewhere = schemaInWorker(digest, code, worker);
  return {
    validate: (value) => {
      try {
        return check(value);
      } catch (error) {
        if (error instanceof PatternBudgetError) return elsewhere.validate(value);
        throw error;
      }
    },
  };
}

/** A schema that is checked in the worker. */
export function schemaInWorker(digest: string, code: string, worker: WorkerLane): CompiledSchema {
  return {
    validate: async (value) => {
      const first = await worker.run({ kind: "check", digest, value });
      // Code is large: it is sent only where the worker has not seen it, or no longer holds it.
      const reply =
        first.kind === "missing" ? await worker.run({ kind: "check", digest, code, value }) : first;
      switch (reply.kind) {
        case "checked":
          return reply.violation;
        case "exceeded":
          return TOO_COSTLY;
        default:
          throw new Error(`the schema worker answered ${reply.kind}`);
      }
    },
  };
}

/** Not a failure to be retried: the same value would take as long again, and hold up its source for ever. */
const TOO_COSTLY: SchemaViolation = {
  path: "",
  message: "takes too much time or memory to be checked against its schema",
};
