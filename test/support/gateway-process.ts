import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { SourcesTiming } from "../../src/gateway/sources.ts";
import type { HandlersTiming } from "../../src/handlers/handlers.ts";
import "./compile-cache.ts";
import { CEILING_MS } from "./until.ts";

const MAIN = join(import.meta.dirname, "../../src/inlet.js");
const TIMED = join(import.meta.dirname, "timed-gateway.ts");

/** A gateway in its own process, as an operator starts it. */
export interface GatewayProcess extends AsyncDisposable {
  readonly pid: number;
  /** The gateway's address, `http://127.0.0.1:<port>`. */
  readonly origin: string;
  /** Returns all standard output and error so far. */
  readonly output: () => string;
  readonly exited: Promise<number | NodeJS.Signals>;
  readonly kill: (signal: NodeJS.Signals) => void;
  /** Calls the management API with the test's key. Throws unless the call succeeds. */
  readonly api: <T>(method: string, path: string, body?: unknown) => Promise<T>;
}

export const API_KEY = "a-key-for-tests-that-is-long-enough-0123456789";

/** The variables of the shell that a program needs to run. */
const SHELL_ENV: Readonly<Record<string, string>> = {
  PATH: process.env.PATH ?? "",
  TMPDIR: tmpdir(),
  ...(process.env.NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE }),
};
/** The environment of a program of this repository that a test starts. */
export const PROGRAM_ENV: Readonly<Record<string, string>> = {
  INLET_DRAIN_DELAY_SECONDS: "0",
  ...SHELL_ENV,
};

export const METRICS_TOKEN = "metrics-token-for-tests";

/** Settings for tests and benchmarks, which send as fast as they can and read the metrics. */
export const UNLIMITED = {
  INLET_METRICS_TOKEN: METRICS_TOKEN,
  INLET_API_REQUESTS_PER_MINUTE: "1000000000",
  INLET_HOOK_REQUESTS_PER_SECOND: "1000000000",
  INLET_SOURCE_DELIVERIES_PER_SECOND: "1000000000",
};

/** Starts `src/inlet.js`, or `timed-gateway.ts` when a timing is given, on a free port. Waits until the gateway is ready. */
export async function startGatewayProcess(
  env: Readonly<Record<string, string>>,
  options: {
    readonly sourcesTiming?: SourcesTiming;
    readonly handlersTiming?: Partial<HandlersTiming>;
    /** A program of this or an earlier version. It gets no default settings, because an earlier version may not know them. */
    readonly main?: string;
  } = {},
): Promise<GatewayProcess> {
  const { sourcesTiming, handlersTiming, main = MAIN } = options;
  const ceilingMs = CEILING_MS * Number(env.INLET_PROCESSES ?? 1);
  const isTimed = sourcesTiming !== undefined || handlersTiming !== undefined;
  const child = spawn(process.execPath, [isTimed ? TIMED : main], {
    env: {
      ...SHELL_ENV,
      INLET_PORT: "0",
      INLET_API_KEY: API_KEY,
      ...(options.main === undefined && { ...PROGRAM_ENV, ...UNLIMITED }),
      ...(isTimed && { TIMED_GATEWAY: JSON.stringify({ sourcesTiming, handlersTiming }) }),
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = once(child, "exit").then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals);
  let output = "";
  child.stderr.on("data", (chunk: Buffer) => {
    output += chunk;
  });
  const origin = await new Promise<string>((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new Error(`the gateway was not ready within ${ceilingMs} ms:\n${output}`));
    }, ceilingMs);
    createInterface(child.stdout).on("line", (line) => {
      output += `${line}\n`;
      const port = /^Inlet listens at .*:(\d+)\/v1$/.exec(line)?.[1];
      if (port === undefined) return;
      clearTimeout(timer);
      resolve(`http://127.0.0.1:${port}`);
    });
    void exited.then((code) => {
      clearTimeout(timer);
      reject(new Error(`the gateway ended with ${code}:\n${output}`));
    });
  });
  return {
    pid: pidOf(child),
    origin,
    output: () => output,
    exited,
    kill: (signal) => child.kill(signal),
    api: (method, path, body) => callApi(origin, method, path, body),
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill("SIGTERM");
        // The process may have been stopped by SIGSTOP.
        child.kill("SIGCONT");
      }
      await exited;
    },
  };
}

/** Reads the metrics of a gateway, as Prometheus does. */
export async function readMetrics(origin: string, accept = "text/plain"): Promise<string> {
  const response = await fetch(`${origin}/metrics`, {
    headers: { authorization: `Bearer ${METRICS_TOKEN}`, accept },
  });
  if (!response.ok) throw new Error(`/metrics: ${response.status}`);
  return response.text();
}

export async function callApi<T>(
  origin: string,
  method: string,
  path: string,
  body?: unknown,
  key = API_KEY,
): Promise<T> {
  const response = await fetch(`${origin}/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return JSON.parse(text) as T;
}

function pidOf(child: ChildProcess): number {
  if (child.pid === undefined) throw new Error("the process did not start");
  return child.pid;
}
