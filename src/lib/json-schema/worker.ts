/** The worker thread's program: generates code from schemas, and checks values against what is too costly elsewhere. */
import { parentPort } from "node:worker_threads";
import { LRUCache } from "lru-cache";
import { type Check, evaluateCode } from "./evaluate.ts";
import { createSchemaCheck } from "./generate/dialects.ts";
import { generateCode } from "./generate/generate.ts";
import type { Reply, Request } from "./protocol.ts";

const MAX_HELD_CODE = 64 * 1024 * 1024;

function createAnswers(): (request: Request) => Reply {
  const checkSchema = createSchemaCheck();
  const checks = new LRUCache<string, Check>({ maxSize: MAX_HELD_CODE });
  return (request) => {
    if (request.kind === "compile")
      return { kind: "compiled", result: generateCode(request.text, checkSchema) };
    const { digest, code, value } = request;
    let check = checks.get(digest);
    if (!check) {
      if (code === undefined) return { kind: "missing" };
      // Time is bounded from outside, by the end of this thread.
      check = evaluateCode(code, { patternBudget: Number.POSITIVE_INFINITY });
      checks.set(digest, check, { size: code.length });
    }
    return { kind: "checked", violation: check(value) };
  };
}

if (!parentPort) throw new Error("worker.ts runs as a worker thread");
const port = parentPort;
const answer = createAnswers();
port.on("message", (request: Request) => port.postMessage(answer(request)));
port.postMessage({ kind: "ready" } satisfies Reply);
