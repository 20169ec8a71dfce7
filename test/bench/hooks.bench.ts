/**
 * Measures the cost of a delivery and of a rejection, compared with baselines.
 *
 * Rounds alternate, so that other load on the machine affects all receivers. The measure is CPU time per request, of the gateway and of
 * Redis separately, because it varies less with other load than requests per second do. Redis syncs each write. The load generator is
 * a separate process with 64 connections. Prints by how much a goal is missed, and then fails.
 *
 * usage: npm run bench [-- <rounds> [<seconds>]]
 */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { loadavg } from "node:os";
import { join } from "node:path";
import { text as readText } from "node:stream/consumers";
import { compileHmac } from "../../src/lib/secrets/hmac.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { startBenchRedis } from "./redis.ts";
import type { RefusedAnswer } from "./rejections.ts";
import {
  alternate,
  bodyOf,
  CONNECTIONS,
  createGoals,
  ID_HEADER,
  median,
  planOf,
  print,
  startServer,
  type Target,
} from "./rounds.ts";

const [ROUNDS = 5, SECONDS = 3] = process.argv.slice(2).map(Number);
const SECRET = "a-secret-of-the-bench";
const GOALS = {
  small: 0.75,
  large: 0.95,
  sliced: 0.75,
  signed: 0.75,
  rejected: 0.9,
  redis: 2.5,
  fastPath: 1.1,
};

const goals = createGoals();

await using stack = new AsyncDisposableStack();
const redis = stack.use(await startBenchRedis());
const settings = { rounds: ROUNDS, seconds: SECONDS, redisPid: redis.process.pid ?? 0 };
const baseline = await startNode(stack, "baseline", "baseline.ts", redis.socket);
const gateway = stack.use(
  await startGatewayProcess({
    INLET_DATA_DIR: join(redis.dir, "data"),
    REDIS_URL: `unix://${redis.socket}`,
    INLET_LOG_LEVEL: "warn",
  }),
);
const [plain, sliced, signed, limited] = await installChannels();
process.stdout.write(
  `${ROUNDS} rounds of ${SECONDS} s, machine load ${loadavg()[0]?.toFixed(1)}; medians (least–most)\n`,
);

const small = await bodyOf(468);
const large = await bodyOf(11_700);
await compareWrites("468 B", small, plain, GOALS.small, GOALS.redis);
await compareReaders("468 B, read by Node's HTTP server", small, plain);
await compareWrites("11.7 kB", large, plain, GOALS.large);
await compareWrites("11.7 kB, with 5 kB published", large, sliced, GOALS.sliced);
await compareWrites("468 B, signed like GitHub", await bodyOf(468, { id: "{id}" }), signed, GOALS.signed);

const unknown = `/hooks/ch_${"0".repeat(36)}`;
await compareRejections("an unknown address", { path: unknown, status: 404 });
await compareRejections("above the rate limit of a channel", { path: limited, status: 429 });
await compareRejections("a body that is too large", {
  path: plain,
  status: 413,
  headers: { "content-length": "99999999" },
});
await compareRejections("a wrong signature", {
  path: signed,
  status: 401,
  headers: { "x-hub-signature-256": `sha256=${"0".repeat(64)}` },
  extraMicros: hmacMicros(small),
});

goals.tell();

async function compareWrites(title: string, body: string, path: string, goal: number, redisGoal?: number) {
  const secret = path === signed ? SECRET : undefined;
  const plan = { ...planOf(body), ...(secret !== undefined && { secret }) };
  const inlet = inletAt(path);
  const [baselines = [], inlets = []] = await alternate(settings, [
    [baseline, plan],
    [inlet, plan],
  ]);
  process.stdout.write(`\n${title}, ${CONNECTIONS} connections\n`);
  print(baseline.name, baselines);
  print(inlet.name, inlets);
  const extra = secret === undefined ? 0 : hmacMicros(body);
  if (extra > 0) process.stdout.write(`  HMAC alone, included in Inlet's time: ${extra.toFixed(1)} µs\n`);
  const baselineMicros = median(baselines, "cpuMicros") + extra;
  goals.check(`${title}: CPU of the baseline to Inlet's`, baselineMicros / median(inlets, "cpuMicros"), goal);
  const redisRatio = median(inlets, "redisMicros") / median(baselines, "redisMicros");
  goals.check(`${title}: CPU of Redis, Inlet's to the baseline's`, redisRatio, redisGoal, "most");
}

/** Compares a delivery on the fast path with the same delivery handed off to `node:http` by a header. */
async function compareReaders(title: string, body: string, path: string) {
  const plan = planOf(body);
  const nodePlan = { ...plan, headers: { ...plan.headers, "x-left-to-node": "\u00e9" } };
  const [nodes = [], inlets = []] = await alternate(settings, [
    [inletAt(path), nodePlan],
    [inletAt(path), plan],
  ]);
  process.stdout.write(`\n${title}, ${CONNECTIONS} connections\n`);
  print("by Node", nodes);
  print("on the fast path", inlets);
  const ratio = median(nodes, "cpuMicros") / median(inlets, "cpuMicros");
  goals.check(`${title}: CPU to that on the fast path`, ratio, GOALS.fastPath);
}

/** Compares a rejection with a route that only sends the same response. */
async function compareRejections(
  title: string,
  {
    path,
    status,
    headers = {},
    extraMicros = 0,
  }: {
    readonly path: string;
    readonly status: number;
    readonly headers?: Readonly<Record<string, string>>;
    /** Cost in µs of the computation that must precede the rejection. */
    readonly extraMicros?: number;
  },
) {
  const plan = planOf(small);
  const rejectedPlan = { ...plan, headers: { ...plan.headers, ...headers }, status };
  await using servers = new AsyncDisposableStack();
  const response = JSON.stringify(await fetchRejection(path, plan.body, rejectedPlan));
  const hono = await startNode(servers, "Hono route", "rejections.ts", "hono", response);
  const bare = await startNode(servers, "node:http", "rejections.ts", "bare", response);
  const [honos = [], bares = [], inlets = []] = await alternate(settings, [
    [{ ...hono, path: "/hooks/x" }, rejectedPlan],
    [{ ...bare, path: "/hooks/x" }, rejectedPlan],
    [inletAt(path), rejectedPlan],
  ]);
  process.stdout.write(`\nRejected: ${title} (${status})\n`);
  print(bare.name, bares);
  print(hono.name, honos);
  print("Inlet", inlets);
  const baselineMicros = median(honos, "cpuMicros") + extraMicros;
  goals.check(
    `${title}: CPU of the route to Inlet's`,
    baselineMicros / median(inlets, "cpuMicros"),
    GOALS.rejected,
  );
  goals.check(
    `${title}: CPU of node:http to Inlet's`,
    median(bares, "cpuMicros") / median(inlets, "cpuMicros"),
  );
}

async function fetchRejection(
  path: string,
  body: string,
  { headers, status }: Omit<RefusedAnswer, "body">,
): Promise<RefusedAnswer> {
  for (;;) {
    const sending = request(new URL(path, gateway.origin), {
      method: "POST",
      headers: { "content-length": Buffer.byteLength(body), ...headers },
    });
    sending.on("error", () => {}).end(body);
    const [incoming] = (await once(sending, "response")) as [IncomingMessage];
    const text = await readText(incoming);
    sending.destroy();
    // Skips requests that a rate-limited channel still accepts.
    if (incoming.statusCode !== status) continue;
    const { date: _, "keep-alive": __, "content-length": ___, connection, ...others } = incoming.headers;
    const closes = connection === "close" ? { connection } : {};
    return { status, headers: { ...(others as Record<string, string>), ...closes }, body: JSON.parse(text) };
  }
}

/** Returns the time to sign a body of this size, in µs. */
function hmacMicros(body: string): number {
  const bytes = Buffer.from(body);
  const times = 20_000;
  const hmac = compileHmac("sha256", SECRET);
  const sign = (): void => {
    for (let i = 0; i < times; i++) hmac([bytes]);
  };
  sign();
  const { user, system } = process.cpuUsage();
  sign();
  const used = process.cpuUsage({ user, system });
  return (used.user + used.system) / times;
}

function inletAt(path: string): Target {
  return { name: "Inlet", pid: gateway.pid, port: Number(new URL(gateway.origin).port), path };
}

function startNode(
  owner: AsyncDisposableStack,
  name: string,
  file: string,
  ...args: readonly string[]
): Promise<Target> {
  return startServer(owner, name, [process.execPath, join(import.meta.dirname, file), ...args]);
}

async function installChannels(): Promise<readonly [string, string, string, string]> {
  const definitions = (more: object = {}) =>
    ["push", "issues", "pull_request"].map((type) => ({ type, ...more }));
  const byHeaders = { typePath: "$headers['x-github-event']", idPath: `$headers['${ID_HEADER}']` };
  const channel = (uid: string, config: object, events: readonly object[]) => ({
    uid,
    kind: "webhook",
    title: uid,
    config,
    events,
  });
  const blueprint = await gateway.api<{ id: string }>("POST", "/blueprints", {
    uid: "bench",
    title: "Bench",
    channels: [
      channel("plain", {}, definitions(byHeaders)),
      channel("sliced", {}, definitions({ ...byHeaders, payloadPath: "$.repository" })),
      channel("signed", { preset: "github" }, definitions()),
      channel("limited", { limits: { requestsPerSecond: 1 } }, definitions(byHeaders)),
    ],
  });
  const app = await gateway.api<{ id: string; channels: readonly { uid: string; url: string }[] }>(
    "POST",
    "/apps/install",
    { blueprintId: blueprint.id },
  );
  await gateway.api("PUT", `/apps/${app.id}/channels/signed`, { config: { secrets: [{ value: SECRET }] } });
  const pathOf = (uid: string): string => {
    const found = app.channels.find((one) => one.uid === uid);
    if (found === undefined) throw new Error(`the app has no channel ${uid}`);
    return new URL(found.url).pathname;
  };
  return [pathOf("plain"), pathOf("sliced"), pathOf("signed"), pathOf("limited")];
}
