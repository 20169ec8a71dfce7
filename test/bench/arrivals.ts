/**
 * An open-loop load generator in a separate process.
 *
 * Requests arrive at random times (a Poisson process), whether or not earlier requests have finished. Latencies start at the planned
 * time of sending, so waiting for a connection or for this program counts.
 *
 * usage: node arrivals.ts '<an ArrivalsPlan>'; prints one JSON line.
 */
import { connect, type Socket } from "node:net";
import { sizeOfAnswer } from "./answers.ts";
import type { LoadPlan } from "./load.ts";

export interface ArrivalsPlan extends Omit<LoadPlan, "secret" | "status" | "pathsFile"> {
  readonly perSecond: number;
}

export interface ArrivalsResult {
  readonly requests: number;
  readonly failures: number;
  /** Time until the last response. */
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  /** Delay between a free connection and the actual send: the part of the latencies caused by this program. */
  readonly latenessP99Ms: number;
  /** Maximum number of requests that waited for a connection at the same time. */
  readonly mostWaiting: number;
}

interface Connection {
  readonly socket: Socket;
  dueMs: number;
  answer: string;
}

/** A long timeout, because a busy machine still responds eventually. */
const PATIENCE_MS = 60_000;
/** Resolution of Node's timers. Requests that are due within one step are sent together. */
const TICK_MS = 1;

const plan = JSON.parse(process.argv[2] ?? "") as ArrivalsPlan;
const run = `${Date.now().toString(36)}${process.pid.toString(36)}`;
const head = [
  `POST ${plan.path} HTTP/1.1`,
  `host: ${plan.host}:${plan.port}`,
  ...Object.entries(plan.headers).map(([name, value]) => `${name}: ${value}`),
  `content-length: ${Buffer.byteLength(plan.body)}`,
  `${plan.idHeader}: `,
].join("\r\n");

const latenciesMs: number[] = [];
const latenessMs: number[] = [];
const waitingSinceMs: number[] = [];
let firstWaiting = 0;
let mostWaiting = 0;
let failures = 0;
let sent = 0;
const idle: Connection[] = await Promise.all(Array.from({ length: plan.connections }, openConnection));

const startedMs = performance.now();
const endsMs = startedMs + plan.seconds * 1_000;
let nextDueMs = startedMs + gapMs();
await new Promise<void>((resolve) => {
  const tick = (): void => {
    const nowMs = performance.now();
    for (; nextDueMs <= nowMs && nextDueMs < endsMs; nextDueMs += gapMs()) arrive(nextDueMs, nowMs);
    const isOver = nextDueMs >= endsMs && idle.length === plan.connections;
    if (isOver || nowMs > endsMs + PATIENCE_MS) resolve();
    else setTimeout(tick, TICK_MS);
  };
  tick();
});
const seconds = (performance.now() - startedMs) / 1_000;
failures += plan.connections - idle.length + waiting();
for (const { socket } of idle) socket.destroy();

const result: ArrivalsResult = {
  requests: latenciesMs.length,
  failures,
  seconds,
  p50Ms: percentile(latenciesMs, 0.5),
  p99Ms: percentile(latenciesMs, 0.99),
  p999Ms: percentile(latenciesMs, 0.999),
  latenessP99Ms: percentile(latenessMs, 0.99),
  mostWaiting,
};
process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit());

function arrive(dueMs: number, nowMs: number): void {
  const connection = idle.pop();
  if (connection !== undefined) {
    latenessMs.push(nowMs - dueMs);
    send(connection, dueMs);
    return;
  }
  waitingSinceMs.push(dueMs);
  mostWaiting = Math.max(mostWaiting, waiting());
}

function send(connection: Connection, dueMs: number): void {
  connection.dueMs = dueMs;
  connection.answer = "";
  connection.socket.write(
    `${head}${run}-${(sent++).toString().padStart(9, "0")}\r\n\r\n${plan.body}`,
    "latin1",
  );
}

function onData(connection: Connection, chunk: string): void {
  connection.answer += chunk;
  const size = sizeOfAnswer(connection.answer);
  if (size === undefined || connection.answer.length < size) return;
  latenciesMs.push(performance.now() - connection.dueMs);
  if (!connection.answer.startsWith("HTTP/1.1 200 ")) failures++;
  const dueMs = waitingSinceMs[firstWaiting];
  if (dueMs === undefined) {
    idle.push(connection);
    return;
  }
  firstWaiting++;
  send(connection, dueMs);
}

function openConnection(): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: plan.host, port: plan.port, noDelay: true });
    const connection: Connection = { socket, dueMs: 0, answer: "" };
    socket.setEncoding("latin1");
    socket.on("connect", () => resolve(connection));
    socket.on("error", reject);
    socket.on("data", (chunk: string) => onData(connection, chunk));
  });
}

/** Returns the random time until the next arrival, in ms. */
function gapMs(): number {
  return (-Math.log(1 - Math.random()) * 1_000) / plan.perSecond;
}

function waiting(): number {
  return waitingSinceMs.length - firstWaiting;
}

function percentile(all: readonly number[], share: number): number {
  const sorted = all.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length * share)] ?? Number.NaN;
}
