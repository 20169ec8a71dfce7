/**
 * Entry point of the worker threads. They generate code from schemas, and validate values that are too expensive for the main
 * thread.
 */

import { parentPort } from "node:worker_threads";
import { LRUCache } from "lru-cache";
import { parseJson } from "../../event/parse-json.ts";
import type { Finding } from "../errors.ts";
import type { Result } from "../result.ts";
import { goBehindOtherThreads } from "../thread-priority.ts";
import type { SchemaViolation } from "./compiled-schema.ts";
import { type Check, evaluateCode } from "./evaluate.ts";
import { createSchemaCheck } from "./generate/dialects.ts";
import { type GeneratedCode, generateCode } from "./generate/generate.ts";

export type SchemaRequest =
  | { readonly kind: "compile"; readonly text: string }
  /** Request to validate a value. Without `code`, the worker replies `missing` if the code is not in its cache. */
  | {
      readonly kind: "check";
      readonly digest: string;
      readonly code?: string;
      readonly checked: CheckedValue;
    };

/** A value to validate, or its JSON text. */
export type CheckedValue = { readonly value: unknown } | { readonly json: string };

export type SchemaAnswer =
  | {
      readonly kind: "compiled";
      readonly result: Result<GeneratedCode, readonly Finding[]>;
      readonly cpuMs: number;
    }
  | { readonly kind: "checked"; readonly violation: SchemaViolation | undefined }
  | { readonly kind: "missing" };

/** Maximum total length in characters of the code that a worker caches. The code of fifty schemas of 75 kB takes about 80 MB. */
const MAX_HELD_CODE = 160 * 1024 * 1024;

function createAnswers(): (request: SchemaRequest) => SchemaAnswer {
  const checkSchema = createSchemaCheck();
  const checks = new LRUCache<string, Check>({ maxSize: MAX_HELD_CODE });
  return (request) => {
    if (request.kind === "compile") {
      const since = process.threadCpuUsage();
      const result = generateCode(request.text, checkSchema);
      const { user, system } = process.threadCpuUsage(since);
      return { kind: "compiled", result, cpuMs: (user + system) / 1_000 };
    }
    const { digest, code, checked } = request;
    let check = checks.get(digest);
    if (!check) {
      if (code === undefined) return { kind: "missing" };
      // No budget is needed here, because the job queue terminates this thread after its CPU time limit.
      check = evaluateCode(code, { patternBudget: Number.POSITIVE_INFINITY });
      checks.set(digest, check, { size: code.length });
    }
    return {
      kind: "checked",
      violation: "json" in checked ? checkJson(check, checked.json) : check(checked.value),
    };
  };
}

function checkJson(check: Check, json: string): SchemaViolation | undefined {
  let value: unknown;
  try {
    value = parseJson(json);
  } catch {
    return { path: "", message: "is not valid JSON", isInconclusive: true };
  }
  return check(value);
}

if (!parentPort) throw new Error("worker.ts runs as a worker thread");
const port = parentPort;
goBehindOtherThreads();
const answer = createAnswers();
port.on("message", (request: SchemaRequest) => port.postMessage(answer(request)));
port.postMessage({ kind: "ready" });
