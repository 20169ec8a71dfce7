/**
 * Prints the files of `src` that one signed JSON delivery enters, with the functions that it calls. Constructors do not count.
 *
 * The gateway runs in this process, and its counts are those of V8's coverage. A function counts if each of several deliveries calls it, so
 * periodic work does not.
 *
 * usage: npm run --silent hot-path
 */
import { once } from "node:events";
import { type Profiler, Session } from "node:inspector/promises";
import { connect } from "node:net";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { loadConfig } from "../../src/config/load.ts";
import { startGateway } from "../../src/gateway.ts";
import { compileHmac } from "../../src/lib/secrets/hmac.ts";
import { createLog } from "../../src/log.ts";
import { channelOf, installApp } from "../support/channels.ts";
import { API_KEY, callApi, PROGRAM_ENV } from "../support/gateway-process.ts";
import { startBenchRedis } from "./redis.ts";
import { bodyOf } from "./rounds.ts";

const SRC = join(import.meta.dirname, "../../src");
const SECRET = "a-secret-of-the-bench";
const DELIVERIES = 20;
/** Names of constructors in V8's coverage. */
const CONSTRUCTOR = /^(?:[A-Z]|<instance_members_initializer>$)/;

await using stack = new AsyncDisposableStack();
const redis = stack.use(await startBenchRedis());
const config = loadConfig({
  ...PROGRAM_ENV,
  INLET_PORT: "0",
  INLET_API_KEY: API_KEY,
  INLET_DATA_DIR: join(redis.dir, "data"),
  REDIS_URL: `unix://${redis.socket}`,
});
if (!config.ok) throw new Error(JSON.stringify(config.error));
const log = createLog({ level: "error" });
const gateway = stack.use(await startGateway(config.value, { log, signal: new AbortController().signal }));
const origin = `http://127.0.0.1:${gateway.port}`;
const api = <T>(method: string, path: string, body?: unknown): Promise<T> =>
  callApi<T>(origin, method, path, body);
const app = await installApp({ api }, [
  {
    uid: "signed",
    kind: "webhook",
    config: { preset: "github" },
    events: [{ type: "push" }, { type: "issues" }],
  },
]);
await api("PUT", `/apps/${app.id}/channels/signed`, { config: { secrets: [{ value: SECRET }] } });
const path = new URL(channelOf(app).url ?? "").pathname;
const sign = compileHmac("sha256", SECRET);
// Requests of `fetch` have headers that only `node:http` reads.
const socket = stack.adopt(connect(gateway.port, "127.0.0.1"), (open) => void open.destroy());

async function buildRequest(id: string): Promise<string> {
  const body = await bodyOf(468, { id });
  const head = [
    `POST ${path} HTTP/1.1`,
    `host: 127.0.0.1:${gateway.port}`,
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    "x-github-event: push",
    `x-github-delivery: ${id}`,
    `x-hub-signature-256: sha256=${sign([Buffer.from(body)]).toString("hex")}`,
  ];
  return `${head.join("\r\n")}\r\n\r\n${body}`;
}

async function deliver(request: string): Promise<void> {
  socket.write(request);
  const [response] = (await once(socket, "data")) as [Buffer];
  if (!response.includes('"published":1')) throw new Error(`the delivery was not published: ${response}`);
}

const session = new Session();
session.connect();
await session.post("Profiler.enable");
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
let called: readonly string[] | undefined;
for (let index = 0; index <= DELIVERIES; index++) {
  const request = await buildRequest(`delivery-${index}`);
  await session.post("Profiler.takePreciseCoverage");
  await deliver(request);
  const { result } = await session.post("Profiler.takePreciseCoverage");
  const now = new Set(result.flatMap(listCalled));
  // The first delivery also loads and compiles its channel.
  if (index > 0) called = called?.filter((one) => now.has(one)) ?? [...now];
}
session.disconnect();
const byFile = Map.groupBy(called ?? [], (one) => one.split("\t")[0] ?? "");
for (const [file, names] of [...byFile].sort(([a], [b]) => (a < b ? -1 : 1)))
  console.log(`${file.padEnd(36)} ${names.map((one) => one.split("\t")[1] || "(anonymous)").join(", ")}`);
console.log(`${byFile.size} files`);

/** Returns the called functions of a file of `src`: path, name and offset. */
function listCalled({ url, functions }: Profiler.ScriptCoverage): readonly string[] {
  const file = url.startsWith("file:") ? relative(SRC, fileURLToPath(url)) : "..";
  if (file.startsWith("..")) return [];
  return functions.flatMap(({ functionName, ranges: [range] }) =>
    range !== undefined && range.count > 0 && !CONSTRUCTOR.test(functionName)
      ? [`${file}\t${functionName}\t${range.startOffset}`]
      : [],
  );
}
