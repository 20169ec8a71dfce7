/** Worker program for the tests of the worker queue. Its jobs succeed immediately, or misbehave on purpose. */
import { parentPort } from "node:worker_threads";

export type TinyRequest =
  | { readonly kind: "echo"; readonly value?: unknown }
  | { readonly kind: "fail" }
  /** Allocates arrays of `numbers` numbers until the worker is terminated. */
  | { readonly kind: "eat"; readonly numbers: number };

export interface TinyAnswer {
  readonly kind: "echoed";
}

if (!parentPort) throw new Error("tiny-worker.ts runs as a worker thread");
const port = parentPort;
port.on("message", (request: TinyRequest) => {
  if (request.kind === "fail") throw new Error("it fails");
  if (request.kind === "eat") eat(request.numbers);
  port.postMessage({ kind: "echoed" } satisfies TinyAnswer);
});
port.postMessage({ kind: "ready" });

function eat(numbers: number): never {
  const held: unknown[] = [];
  for (;;) held.push(new Array(numbers).fill(1.5));
}
