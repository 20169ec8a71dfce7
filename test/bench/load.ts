/**
 * A closed-loop load generator in a separate process: each keep-alive connection posts, waits for the response, and posts again.
 * It speaks HTTP over bare sockets to use as little of the measured machine as possible.
 *
 * usage: node load.ts '<a LoadPlan>'; prints one JSON line.
 */
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { sizeOfAnswer } from "./answers.ts";

export interface LoadPlan {
  readonly host: string;
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
}

export interface LoadResult {
  readonly requests: number;
  readonly failures: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const ID_OF_LENGTH = "0".repeat(30);
const plan = JSON.parse(process.argv[2] ?? "") as LoadPlan;
const run = `${Date.now().toString(36)}${process.pid.toString(36)}`;
const latenciesMs: number[] = [];
let failures = 0;
let sent = 0;

const paths: readonly string[] =
  plan.pathsFile === undefined ? [plan.path] : JSON.parse(readFileSync(plan.pathsFile, "utf8"));
let turn = plan.from ?? Math.floor(Math.random() * paths.length);

const head = [
  `host: ${plan.host}:${plan.port}`,
  ...Object.entries(plan.headers).map(([name, value]) => `${name}: ${value}`),
  // Uses the length of the body unless the plan sets a fake one.
  ...("content-length" in plan.headers ? [] : [`content-length: ${Buffer.byteLength(fill(ID_OF_LENGTH))}`]),
  `${plan.idHeader}: `,
].join("\r\n");
const answered = `HTTP/1.1 ${plan.status ?? 200} `;

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

function fill(id: string): string {
  return plan.secret === undefined ? plan.body : plan.body.replace("{id}", id);
}

function requestOf(id: string): string {
  const body = fill(id.padEnd(ID_OF_LENGTH.length, "0"));
  const signed =
    plan.secret === undefined
      ? ""
      : `\r\nx-hub-signature-256: sha256=${createHmac("sha256", plan.secret).update(body).digest("hex")}`;
  return `POST ${paths[turn++ % paths.length]} HTTP/1.1\r\n${head}${id}${signed}\r\n\r\n${body}`;
}

function runConnection(): Promise<void> {
  return new Promise((resolve, reject) => {
    let socket: Socket;
    let sentAt = 0;
    let answer = "";
    const post = (): void => {
      if (performance.now() >= endsAt) {
        socket.end();
        resolve();
        return;
      }
      sentAt = performance.now();
      socket.write(requestOf(`${run}-${(sent++).toString().padStart(9, "0")}`));
    };
    const onData = (chunk: string): void => {
      answer += chunk;
      const size = sizeOfAnswer(answer);
      if (size === undefined || answer.length < size) return;
      latenciesMs.push(performance.now() - sentAt);
      if (!answer.startsWith(answered)) failures++;
      const isLast = /\r\nconnection: close\r\n/i.test(answer);
      answer = answer.slice(size);
      if (isLast) {
        socket.destroy();
        open();
      } else post();
    };
    const open = (): void => {
      socket = connect({ host: plan.host, port: plan.port, noDelay: true });
      socket.setEncoding("latin1");
      socket.on("connect", post);
      socket.on("error", reject);
      socket.on("data", onData);
    };
    open();
  });
}
