/** Entry point of the worker thread that infers schemas and validates the samples, because samples are untrusted and large. */

import { parentPort } from "node:worker_threads";
import { parseJson } from "../../../event/parse-json.ts";
import type { JsonSchema } from "../../../lib/json-schema/compiled-schema.ts";
import { type Drift, findDrift } from "../../../lib/json-schema/drift/find-drift.ts";
import { type Check, evaluateCode, validatorOf } from "../../../lib/json-schema/evaluate.ts";
import { createSchemaCheck } from "../../../lib/json-schema/generate/dialects.ts";
import { generateCode } from "../../../lib/json-schema/generate/generate.ts";
import { isIdentifier } from "../../../lib/json-schema/infer/identifiers.ts";
import { inferSchema } from "../../../lib/json-schema/infer/infer.ts";
import { goBehindOtherThreads } from "../../../lib/thread-priority.ts";

/** Data of one event or quarantined item. */
export interface Sample {
  readonly text: string;
  readonly isJson: boolean;
  /** Id of the quarantined item. `undefined` for an event. */
  readonly itemId?: string | undefined;
}

export interface InferRequest {
  /** Newest first. */
  readonly samples: readonly Sample[];
  readonly enumValues: boolean;
  /** Schema that the definition has now. */
  readonly current: JsonSchema | undefined;
}

export interface Inferred {
  readonly kind: "inferred";
  readonly schema: Readonly<Record<string, unknown>>;
  readonly events: number;
  readonly quarantined: number;
  readonly failing: number | null;
  readonly violations: readonly Violation[];
  readonly drift: readonly Drift[];
  readonly released: readonly string[];
}

interface Violation {
  readonly path: string;
  readonly message: string;
  readonly count: number;
}

const MAX_VIOLATIONS = 20;
const checkSchema = createSchemaCheck();

function createCheck(schema: JsonSchema): Check {
  if (typeof schema === "boolean") {
    const { validate } = validatorOf(schema);
    return (value) => validate(value, { lane: "" }) as ReturnType<Check>;
  }
  const generated = generateCode(JSON.stringify(schema), checkSchema);
  if (!generated.ok) throw new Error("a schema does not compile");
  return evaluateCode(generated.value.code, { patternBudget: Number.POSITIVE_INFINITY });
}

function infer({ samples, enumValues, current }: InferRequest): Inferred {
  const read = samples.flatMap((sample) => {
    try {
      return [{ ...sample, value: sample.isJson ? (parseJson(sample.text) as unknown) : sample.text }];
    } catch {
      return [];
    }
  });
  const schema = inferSchema(
    read.map(({ value }) => value),
    { enumValues },
  );
  const quarantined = read.flatMap(({ itemId, value }) => (itemId === undefined ? [] : [{ itemId, value }]));
  const inOrder = read.filter(({ itemId }) => itemId === undefined).map(({ value }) => value);
  const others = quarantined.map(({ value }) => value);
  const accepts = createCheck(schema);
  const checkCurrent = current === undefined ? undefined : createCheck(current);
  const found = read.flatMap(({ value }) => {
    const violation = checkCurrent?.(value);
    return violation === undefined ? [] : [{ ...violation, path: generalizePath(violation.path) }];
  });
  const groups = Map.groupBy(found, ({ path, message }) => `${path} ${message}`);
  const violations = [...groups.values()].flatMap(([first, ...others]) =>
    first ? [{ path: first.path, message: first.message, count: 1 + others.length }] : [],
  );
  return {
    kind: "inferred",
    schema,
    events: read.length - quarantined.length,
    quarantined: quarantined.length,
    failing: checkCurrent === undefined ? null : found.length,
    violations: violations.sort((a, b) => b.count - a.count).slice(0, MAX_VIOLATIONS),
    drift: current === undefined ? [] : findDrift(current, { inOrder: inOrder.reverse(), others }),
    released: quarantined.filter(({ value }) => accepts(value) === undefined).map(({ itemId }) => itemId),
  };
}

/** Replaces the indexes and ids in a JSON Pointer by `*`, because ids are values. */
const generalizePath = (path: string): string =>
  path
    .split("/")
    .map((step) => (isIdentifier(step.replaceAll("~1", "/").replaceAll("~0", "~")) ? "*" : step))
    .join("/");

if (!parentPort) throw new Error("worker.ts runs as a worker thread");
const port = parentPort;
goBehindOtherThreads();
port.on("message", (request: InferRequest) => port.postMessage(infer(request)));
port.postMessage({ kind: "ready" });
