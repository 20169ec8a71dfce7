/** The program of a thread that floods hooks: the requests of those whose answers are timed wait for none of its. */
import { Agent, request } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";
import { gzipSync } from "node:zlib";

/** Small JSON, each with an id of its own; XML; few bytes that become many. */
export type FloodBody = { readonly kind: "json" } | { readonly kind: "xml" | "gzip"; readonly bytes: number };

export interface Flood {
  readonly url: string;
  readonly everyMs: number;
  readonly body: FloodBody;
}

export interface FloodOptions {
  readonly mostInFlight: number;
}

/** Answers by status; 0: none. */
export type FloodCounts = ReadonlyMap<number, number>;

const { mostInFlight } = workerData as FloodOptions;
const agent = new Agent({ keepAlive: true });
const counts = new Map<number, number>();
const text = "x".repeat(400);
let current: Flood | undefined;
let sent = 0;

/** What one costs most to read: elements with attributes, or a text that was packed well. */
function bodiesOf(body: FloodBody): () => { readonly bytes: Buffer; readonly headers: object } {
  switch (body.kind) {
    case "json":
      return () => {
        const bytes = Buffer.from(JSON.stringify({ id: `flood-${++sent}`, text }));
        return { bytes, headers: { "content-type": "application/json" } };
      };
    case "xml": {
      const row = '<r a="1" b="2"><c/></r>';
      const bytes = Buffer.from(`<l><id>1</id>${row.repeat((body.bytes - 30) / row.length)}</l>`);
      return () => ({ bytes, headers: { "content-type": "application/xml" } });
    }
    case "gzip": {
      const bytes = gzipSync(JSON.stringify({ id: "1", text: "x".repeat(body.bytes - 30) }));
      const headers = { "content-type": "application/json", "content-encoding": "gzip" };
      return () => ({ bytes, headers });
    }
    default:
      return body satisfies never;
  }
}

function send(url: string, body: ReturnType<ReturnType<typeof bodiesOf>>): Promise<void> {
  return new Promise((resolve) => {
    const done = (status: number): void => {
      counts.set(status, (counts.get(status) ?? 0) + 1);
      resolve();
    };
    const headers = { ...body.headers, "content-length": body.bytes.length };
    const asked = request(url, { method: "POST", agent, headers }, (response) => {
      response.resume();
      response.on("end", () => done(response.statusCode ?? 0));
      response.on("error", () => done(0));
    });
    asked.on("error", () => done(0));
    asked.end(body.bytes);
  });
}

async function flood({ body, everyMs, url }: Flood): Promise<void> {
  const inFlight = new Set<Promise<void>>();
  const next = bodiesOf(body);
  counts.clear();
  for (let due = performance.now(); current !== undefined; due += everyMs) {
    const sending = send(url, next()).finally(() => inFlight.delete(sending));
    inFlight.add(sending);
    await delay(Math.max(0, due - performance.now()));
    while (inFlight.size >= mostInFlight) await Promise.race(inFlight);
  }
  await Promise.all(inFlight);
  parentPort?.postMessage(counts);
}

parentPort?.on("message", (wanted: Flood | "end") => {
  current = wanted === "end" ? undefined : wanted;
  if (current !== undefined) void flood(current);
});
