import { once } from "node:events";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { findInRandomTexts, sliceRandomTexts } from "./slicing.ts";

const RUNS = { sliceRandomTexts, findInRandomTexts } as const;
type Runs = typeof RUNS;

/**
 * Runs one of the functions in a new thread.
 *
 * V8 13.6 has a bug: after an object with a member whose name is a backslash, it parses `{"x":1,"\u0061":2}` as `{"x":1,"\\":2}`. Other
 * test files of the same process parse such objects, but each thread has a V8 heap of its own.
 */
export async function runInNewThread<N extends keyof Runs>(
  name: N,
  seed: number,
  textCount: number,
): Promise<ReturnType<Runs[N]>> {
  const worker = new Worker(new URL(import.meta.url), { workerData: { name, seed, textCount } });
  const [counts] = await once(worker, "message");
  return counts;
}

if (!isMainThread && parentPort && workerData?.name in RUNS) {
  const { name, seed, textCount } = workerData as { name: keyof Runs; seed: number; textCount: number };
  parentPort.postMessage(RUNS[name](seed, textCount));
}
