/**
 * A load generator in a separate process. It speaks HTTP over bare sockets to use as little of the measured machine as possible.
 *
 * Without a rate, each connection posts, waits for the response, and posts again. With a rate, requests arrive at random times (a Poisson
 * process), whether or not earlier requests have finished. Latencies then start at the planned time of sending, so waiting for a
 * connection or for this program counts.
 *
 * usage: node load.ts '<a LoadPlan>'; prints one JSON line.
 */
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";

export interface LoadPlan {
  readonly port: number;
  readonly path: string;
  /** File with a JSON array of paths, used round-robin instead of `path`. */
  readonly pathsFile?: string;
  /** Index of the first path. Random by default. */
  readonly from?: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Name of a header that gets a new id for each request. */
  readonly idHeader: string;
  /** Secret for GitHub signatures. If set, each body is signed, and its `{id}` is replaced by the request's id. */
  readonly secret?: string;
  /** Expected status. Other responses count as failures. Defaults to 200. */
  readonly status?: number;
  readonly connections: number;
  readonly seconds: number;
  /** Requests that arrive per second. By default, each connection sends as fast as it gets responses. */
  readonly perSecond?: number;
}

export interface LoadResult {
  readonly requests: number;
  readonly failures: number;
  /** Time until the last response. */
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  /** Delay between a free connection and the actual send: the part of the latencies caused by this program. */
  readonly latenessP99Ms: number;
}

interface Connection {
  socket: Socket;
  dueMs: number;
  response: string;
}

const HOST = "127.0.0.1";
const ID_OF_LENGTH = "0".repeat(30);
/** A long timeout, because a busy machine still responds eventually. */
const TIMEOUT_MS = 60_000;
/** Resolution of Node's timers. Requests that are due within one step are sent together. */
const TICK_MS = 1;

const plan = JSON.parse(process.argv[2] ?? "") as LoadPlan;
const { perSecond } = plan;
const run = `${Date.now().toString(36)}${process.pid.toString(36)}`;
const paths: readonly string[] =
  plan.pathsFile === undefined ? [plan.path] : JSON.parse(readFileSync(plan.pathsFile, "utf8"));
let turn = plan.from ?? Math.floor(Math.random() * paths.length);
const head = [
  `host: ${HOST}:${plan.port}`,
  ...Object.entries(plan.headers).map(([name, value]) => `${name}: ${value}`),
  // Uses the length of the body unless the plan sets a fake one.
  ...("content-length" in plan.headers ? [] : [`content-length: ${Buffer.byteLength(fill(ID_OF_LENGTH))}`]),
  `${plan.idHeader}: `,
].join("\r\n");
const expected = `HTTP/1.1 ${plan.status ?? 200} `;

const latenciesMs: number[] = [];
const latenessMs: number[] = [];
const waitingSinceMs: number[] = [];
let firstWaiting = 0;
let failures = 0;
let sent = 0;

const idle = await Promise.all(Array.from({ length: plan.connections }, openConnection));
const startedMs = performance.now();
const endsMs = startedMs + plan.seconds * 1_000;
if (perSecond === undefined) for (const connection of idle.splice(0)) send(connection, performance.now());
let nextDueMs = perSecond === undefined ? Number.POSITIVE_INFINITY : startedMs + gapMs(perSecond);
await new Promise<void>((resolve) => {
  const tick = (): void => {
    const nowMs = performance.now();
    if (perSecond !== undefined) {
      for (; nextDueMs <= nowMs && nextDueMs < endsMs; nextDueMs += gapMs(perSecond))
        arrive(nextDueMs, nowMs);
    }
    const isOver = nowMs >= endsMs && idle.length === plan.connections;
    if (isOver || nowMs > endsMs + TIMEOUT_MS) resolve();
    else setTimeout(tick, TICK_MS);
  };
  tick();
});
const seconds = (performance.now() - startedMs) / 1_000;
failures += plan.connections - idle.length + waitingSinceMs.length - firstWaiting;
for (const { socket } of idle) socket.destroy();

const result: LoadResult = {
  requests: latenciesMs.length,
  failures,
  seconds,
  p50Ms: percentile(latenciesMs, 0.5),
  p99Ms: percentile(latenciesMs, 0.99),
  p999Ms: percentile(latenciesMs, 0.999),
  latenessP99Ms: percentile(latenessMs, 0.99),
};
process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit());

function arrive(dueMs: number, nowMs: number): void {
  const connection = idle.pop();
  if (connection === undefined) {
    waitingSinceMs.push(dueMs);
    return;
  }
  latenessMs.push(nowMs - dueMs);
  send(connection, dueMs);
}

function send(connection: Connection, dueMs: number): void {
  connection.dueMs = dueMs;
  connection.response = "";
  connection.socket.write(requestOf(`${run}-${(sent++).toString().padStart(9, "0")}`), "latin1");
}

/** Sends the next request on a connection that got its response, or leaves it idle. */
function proceed(connection: Connection): void {
  const nowMs = performance.now();
  const dueMs = perSecond === undefined && nowMs < endsMs ? nowMs : waitingSinceMs[firstWaiting];
  if (dueMs === undefined) {
    idle.push(connection);
    return;
  }
  if (perSecond !== undefined) firstWaiting++;
  send(connection, dueMs);
}

async function onData(connection: Connection, chunk: string): Promise<void> {
  connection.response += chunk;
  const { response } = connection;
  const size = sizeOf(response);
  if (size === undefined || response.length < size) return;
  latenciesMs.push(performance.now() - connection.dueMs);
  if (!response.startsWith(expected)) failures++;
  if (!/\r\nconnection: close\r\n/i.test(response)) {
    proceed(connection);
    return;
  }
  connection.socket.destroy();
  proceed(await openConnection());
}

function openConnection(): Promise<Connection> {
  return new Promise((resolve) => {
    const socket = connect({ host: HOST, port: plan.port, noDelay: true });
    const connection: Connection = { socket, dueMs: 0, response: "" };
    socket.setEncoding("latin1");
    socket.on("connect", () => resolve(connection));
    socket.on("error", (error) => {
      throw error;
    });
    socket.on("data", (chunk: string) => onData(connection, chunk));
  });
}

/** Returns the length of the whole HTTP response at the start of a text. `undefined` while the response is incomplete. */
function sizeOf(response: string): number | undefined {
  const end = response.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const length = /\r\ncontent-length: (\d+)/.exec(response.slice(0, end).toLowerCase())?.[1];
  if (length !== undefined) return end + 4 + Number(length);
  const last = response.indexOf("\r\n0\r\n\r\n", end);
  return last < 0 ? undefined : last + 7;
}

function requestOf(id: string): string {
  const body = fill(id.padEnd(ID_OF_LENGTH.length, "0"));
  const signed =
    plan.secret === undefined
      ? ""
      : `\r\nx-hub-signature-256: sha256=${createHmac("sha256", plan.secret).update(body).digest("hex")}`;
  return `POST ${paths[turn++ % paths.length]} HTTP/1.1\r\n${head}${id}${signed}\r\n\r\n${body}`;
}

function fill(id: string): string {
  return plan.secret === undefined ? plan.body : plan.body.replace("{id}", id);
}

/** Returns the random time until the next arrival, in ms. */
function gapMs(perSecond: number): number {
  return (-Math.log(1 - Math.random()) * 1_000) / perSecond;
}

function percentile(all: readonly number[], share: number): number {
  return all.toSorted((a, b) => a - b)[Math.floor(all.length * share)] ?? Number.NaN;
}
