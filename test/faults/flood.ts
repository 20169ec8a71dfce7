/**
 * Worker thread that floods hooks or Redis, or only parses bodies. Runs in a separate thread so that it does not delay the timed
 * requests. Uses low priority, because real senders are other machines and take no CPU time from the gateway and its stores.
 */
import { Agent, request } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";
import { gunzipSync, gzipSync } from "node:zlib";
import { XMLParser, XMLValidator } from "fast-xml-parser";
import { Redis } from "ioredis";
import { goBehindOtherThreads } from "../../src/lib/thread-priority.ts";

/** Kind of body: small JSON with a unique id, JSON with many small values, XML, or highly compressed JSON. */
export type FloodBody =
  | { readonly kind: "json" }
  | { readonly kind: "rows" | "xml" | "gzip"; readonly bytes: number };

export type Flood =
  | { readonly url: string; readonly everyMs: number; readonly body: FloodBody }
  /** Writes the same number of bytes directly to Redis, and keeps only the last entries. */
  | {
      readonly redisPort: number;
      readonly everyMs: number;
      readonly entryBytes: number;
      readonly way: FloorWay;
    }
  /** Parses the bodies in this thread and sends no requests. */
  | { readonly everyMs: number; readonly reads: FloodBody };

/**
 * Baseline writes to Redis. `xadd` is the minimum for any gateway. `script` calls XADD in a script, the minimum for a gateway that
 * compares before it writes: Lua in Redis hashes each byte of its arguments.
 */
export type FloorWay = "xadd" | "script";

export interface FloodOptions {
  readonly mostInFlight: number;
}

/** Number of responses by status; status 0 counts requests without a response. */
export type FloodCounts = ReadonlyMap<number, number>;

goBehindOtherThreads();
const { mostInFlight } = workerData as FloodOptions;
const agent = new Agent({ keepAlive: true });
const counts = new Map<number, number>();
const text = "x".repeat(400);
let current: Flood | undefined;
let sent = 0;

/** Returns a generator of bodies that are expensive to parse for their size. */
function createBodies(body: FloodBody): () => { readonly bytes: Buffer; readonly headers: object } {
  switch (body.kind) {
    case "json":
      return () => {
        const bytes = Buffer.from(JSON.stringify({ id: `flood-${++sent}`, text }));
        return { bytes, headers: { "content-type": "application/json" } };
      };
    case "rows": {
      const row = '{"a":1,"b":"2"}';
      const rows = new Array<string>(Math.floor((body.bytes - 30) / (row.length + 1))).fill(row);
      const bytes = Buffer.from(`{"id":"1","rows":[${rows}]}`);
      return () => ({ bytes, headers: { "content-type": "application/json" } });
    }
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

function send(url: string, body: ReturnType<ReturnType<typeof createBodies>>): Promise<void> {
  return new Promise((resolve) => {
    const done = (status: number): void => {
      counts.set(status, (counts.get(status) ?? 0) + 1);
      resolve();
    };
    const headers = { ...body.headers, "content-length": body.bytes.length };
    const outgoing = request(url, { method: "POST", agent, headers }, (response) => {
      response.resume();
      response.on("end", () => done(response.statusCode ?? 0));
      response.on("error", () => done(0));
    });
    outgoing.on("error", () => done(0));
    outgoing.end(body.bytes);
  });
}

const xml = new XMLParser({ ignoreAttributes: false });

/** Parses a body with the same parsers as the gateway. */
function read({ kind }: FloodBody, { bytes }: ReturnType<ReturnType<typeof createBodies>>): void {
  const text = (kind === "gzip" ? gunzipSync(bytes) : bytes).toString();
  if (kind !== "xml") JSON.parse(text);
  else if (XMLValidator.validate(text) === true) xml.parse(text);
}

const KEPT_ENTRIES = 10;
const XADD_BY_SCRIPT = "return redis.call('XADD', KEYS[1], 'MAXLEN', ARGV[1], '*', 'data', ARGV[2])";

function createSender(wanted: Flood): { readonly sendOne: () => Promise<void>; readonly end: () => void } {
  if ("url" in wanted) {
    const next = createBodies(wanted.body);
    return { sendOne: () => send(wanted.url, next()), end() {} };
  }
  if ("reads" in wanted) {
    const next = createBodies(wanted.reads);
    return { sendOne: async () => read(wanted.reads, next()), end() {} };
  }
  const redis = new Redis(wanted.redisPort, "127.0.0.1");
  const entry = Buffer.alloc(wanted.entryBytes, "x");
  const sendOne = {
    xadd: () => redis.xadd("floor", "MAXLEN", KEPT_ENTRIES, "*", "data", entry),
    script: () => redis.eval(XADD_BY_SCRIPT, 1, "floor", KEPT_ENTRIES, entry),
  }[wanted.way];
  return { sendOne: async () => void (await sendOne()), end: () => redis.disconnect() };
}

async function flood(wanted: Flood): Promise<void> {
  const { everyMs } = wanted;
  const inFlight = new Set<Promise<void>>();
  const { sendOne, end } = createSender(wanted);
  counts.clear();
  for (let due = performance.now(); current !== undefined; due += everyMs) {
    const sending = sendOne().finally(() => inFlight.delete(sending));
    inFlight.add(sending);
    await delay(Math.max(0, due - performance.now()));
    while (inFlight.size >= mostInFlight) await Promise.race(inFlight);
  }
  await Promise.all(inFlight);
  end();
  parentPort?.postMessage(counts);
}

parentPort?.on("message", (wanted: Flood | "end") => {
  current = wanted === "end" ? undefined : wanted;
  if (current !== undefined) void flood(current);
});
