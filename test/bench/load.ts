/**
 * A load generator in a process of its own: keep-alive connections that each post, wait for the answer, post again. It
 * speaks HTTP over bare sockets so that it costs as little as possible of the machine that it measures.
 *
 * usage: node load.ts '{"host","port","path","headers","body","idHeader","connections","seconds"}'; prints one JSON line.
 */
import { connect, type Socket } from "node:net";

export interface LoadPlan {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Carries a fresh id with each request. */
  readonly idHeader: string;
  readonly connections: number;
  readonly seconds: number;
}

export interface LoadResult {
  readonly requests: number;
  readonly failures: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const plan = JSON.parse(process.argv[2] ?? "") as LoadPlan;
const run = `${Date.now().toString(36)}${process.pid.toString(36)}`;
const latenciesMs: number[] = [];
let failures = 0;
let sent = 0;

const head = [
  `POST ${plan.path} HTTP/1.1`,
  `host: ${plan.host}:${plan.port}`,
  ...Object.entries(plan.headers).map(([name, value]) => `${name}: ${value}`),
  `content-length: ${Buffer.byteLength(plan.body)}`,
  `${plan.idHeader}: `,
].join("\r\n");
const tail = `\r\n\r\n${plan.body}`;

const startedAt = performance.now();
const endsAt = startedAt + plan.seconds * 1000;
await Promise.all(Array.from({ length: plan.connections }, runConnection));
const seconds = (performance.now() - startedAt) / 1000;

latenciesMs.sort((a, b) => a - b);
const percentile = (share: number): number =>
  latenciesMs[Math.floor(latenciesMs.length * share)] ?? Number.NaN;
const result: LoadResult = {
  requests: latenciesMs.length,
  failures,
  seconds,
  p50Ms: percentile(0.5),
  p99Ms: percentile(0.99),
};
process.stdout.write(`${JSON.stringify(result)}\n`);

function runConnection(): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect({ host: plan.host, port: plan.port, noDelay: true });
    let sentAt = 0;
    let answer = "";
    const post = (): void => {
      if (performance.now() >= endsAt) {
        socket.end();
        resolve();
        return;
      }
      sentAt = performance.now();
      socket.write(`${head}${run}-${(sent++).toString().padStart(9, "0")}${tail}`);
    };
    socket.setEncoding("latin1");
    socket.on("connect", post);
    socket.on("error", reject);
    socket.on("data", (chunk: string) => {
      answer += chunk;
      const size = sizeOf(answer);
      if (size === undefined || answer.length < size) return;
      latenciesMs.push(performance.now() - sentAt);
      if (!answer.startsWith("HTTP/1.1 200")) failures++;
      answer = answer.slice(size);
      post();
    });
  });
}

/** The length of the whole answer; undefined while its head is incomplete. */
function sizeOf(answer: string): number | undefined {
  const end = answer.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const headers = answer.slice(0, end).toLowerCase();
  const length = /\r\ncontent-length: (\d+)/.exec(headers)?.[1];
  if (length !== undefined) return end + 4 + Number(length);
  const last = answer.indexOf("\r\n0\r\n\r\n", end);
  return last < 0 ? undefined : last + 7;
}
