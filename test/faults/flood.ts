/** The program of a thread that floods a hook: the requests of those whose answers are timed wait for none of its. */
import { Agent, request } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";

export interface FloodOptions {
  readonly url: string;
  readonly everyMs: number;
  readonly mostInFlight: number;
}

/** Answers by status; 0: none. */
export type FloodCounts = ReadonlyMap<number, number>;

const { url, everyMs, mostInFlight } = workerData as FloodOptions;
const agent = new Agent({ keepAlive: true });
const counts = new Map<number, number>();
const text = "x".repeat(400);
let isOn = false;
let sent = 0;

function send(): Promise<void> {
  const body = JSON.stringify({ id: `flood-${++sent}`, text });
  return new Promise((resolve) => {
    const done = (status: number): void => {
      counts.set(status, (counts.get(status) ?? 0) + 1);
      resolve();
    };
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    const asked = request(url, { method: "POST", agent, headers }, (response) => {
      response.resume();
      response.on("end", () => done(response.statusCode ?? 0));
      response.on("error", () => done(0));
    });
    asked.on("error", () => done(0));
    asked.end(body);
  });
}

async function flood(): Promise<void> {
  const inFlight = new Set<Promise<void>>();
  for (let due = performance.now(); isOn; due += everyMs) {
    const sending = send().finally(() => inFlight.delete(sending));
    inFlight.add(sending);
    await delay(Math.max(0, due - performance.now()));
    while (inFlight.size >= mostInFlight) await Promise.race(inFlight);
  }
  await Promise.all(inFlight);
  parentPort?.postMessage(counts);
}

parentPort?.on("message", (wanted: "begin" | "end") => {
  isOn = wanted === "begin";
  if (isOn) void flood();
});
