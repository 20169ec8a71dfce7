/** Entry point of the worker thread that compares events with schemas, because events are untrusted and large. */
import { parentPort } from "node:worker_threads";
import { parseJson } from "../../../event/parse-json.ts";
import { goBehindOtherThreads } from "../../thread-priority.ts";
import type { JsonSchema } from "../compiled-schema.ts";
import { type Drift, findDrift } from "./find-drift.ts";

export interface DriftRequest {
  readonly schema: JsonSchema;
  /** JSON texts in the order in which they arrived. */
  readonly texts: readonly string[];
}

export interface DriftResult {
  readonly kind: "compared";
  readonly drift: readonly Drift[];
}

if (!parentPort) throw new Error("worker.ts runs as a worker thread");
const port = parentPort;
goBehindOtherThreads();
port.on("message", ({ schema, texts }: DriftRequest) => {
  const inOrder = texts.map((text) => parseJson(text));
  port.postMessage({ kind: "compared", drift: findDrift(schema, { inOrder }) } satisfies DriftResult);
});
port.postMessage({ kind: "ready" });
