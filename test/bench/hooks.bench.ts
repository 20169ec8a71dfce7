/**
 * What a delivery costs, and a refused one: the hook endpoint against floors that run beside it. Rounds alternate, so that what else
 * the machine does falls on both; the measure is processor time a request, of the gateway and of Redis apart, which
 * moves less with it than requests a second do. Redis syncs each write; 64 connections, the generator in a process of its own. Fails below a goal, and
 * says by how much.
 *
 * usage: npm run bench [-- <rounds> [<seconds>]]
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { loadavg } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { compileHmac } from "../../src/lib/secrets/hmac.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";
import type { LoadPlan, LoadResult } from "./load.ts";
import { startBenchRedis } from "./redis.ts";

const [ROUNDS = 5, SECONDS = 3] = process.argv.slice(2).map(Number);
/** Node optimizes what runs often: the figures of the first tens of thousands of requests are of another program. */
const WARM_REQUESTS = 60_000;
const WARM_SECONDS = 4;
const WARM_TIMES = 4;
const CONNECTIONS = 64;
const ID_HEADER = "x-github-delivery";
const SECRET = "a-secret-of-the-bench";
/** Of the kernel's clock in /proc, on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;
const GOALS = { small: 0.75, large: 0.95, sliced: 0.75, signed: 0.75, refused: 0.9, redis: 2.5 };

interface Target {
  readonly name: string;
  readonly pid: number;
  readonly port: number;
  readonly path: string;
}

/** Of one round. */
interface Figures {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuMicros: number;
  readonly redisMicros: number;
}

const here = (name: string): string => join(import.meta.dirname, name);
const run = promisify(execFile);
const missed: string[] = [];

await using stack = new AsyncDisposableStack();
const redis = stack.use(await startBenchRedis());
const redisPid = redis.process.pid ?? 0;
const floor = await startServer("floor", ["floor.ts", redis.socket]);
const hono = await startServer("a route of Hono", ["refusing.ts", "hono"]);
const bare = await startServer("node:http", ["refusing.ts", "bare"]);
const gateway = stack.use(
  await startGatewayProcess({
    INLET_DATA_DIR: join(redis.dir, "data"),
    REDIS_URL: `unix://${redis.socket}`,
    INLET_LOG_LEVEL: "warn",
  }),
);
const [plain, sliced, signed, limited] = await installChannels();
process.stdout.write(
  `${ROUNDS} rounds of ${SECONDS} s, load of the machine ${loadavg()[0]?.toFixed(1)}; medians (least–most)\n`,
);

const small = await bodyOf(468);
const large = await bodyOf(11_700);
await compareWrites("468 B", small, plain, GOALS.small, GOALS.redis);
await compareWrites("11.7 kB", large, plain, GOALS.large);
await compareWrites("11.7 kB, of which 5 kB are published", large, sliced, GOALS.sliced);
await compareWrites("468 B, signed as by GitHub", await bodyOf(468, { id: "{id}" }), signed, GOALS.signed);

const unknown = `/hooks/ch_${"0".repeat(36)}`;
await compareRefusals("an address that nobody has", { path: unknown, status: 404 });
await compareRefusals("more than a channel takes", { path: limited, status: 429 });
await compareRefusals("a body that is too large", {
  path: plain,
  status: 413,
  headers: { "content-length": "99999999" },
  floorPath: "/hooks/x/close",
});
await compareRefusals("a wrong signature", {
  path: signed,
  status: 401,
  headers: { "x-hub-signature-256": `sha256=${"0".repeat(64)}` },
  extraMicros: hmacMicros(small),
});

for (const line of missed) process.stdout.write(`MISSED ${line}\n`);
if (missed.length > 0) process.exitCode = 1;

/** The whole job against the floor. */
async function compareWrites(title: string, body: string, path: string, goal: number, redisGoal?: number) {
  const secret = path === signed ? SECRET : undefined;
  const plan = { ...planOf(body), ...(secret !== undefined && { secret }) };
  const inlet = inletAt(path);
  const [floors = [], inlets = []] = await alternate([floor, plan], [inlet, plan]);
  process.stdout.write(`\n${title}, ${CONNECTIONS} connections\n`);
  print(floor.name, floors);
  print(inlet.name, inlets);
  const extra = secret === undefined ? 0 : hmacMicros(body);
  if (extra > 0) process.stdout.write(`  of Inlet's, the HMAC alone ${extra.toFixed(1)} µs\n`);
  const floorMicros = median(floors, "cpuMicros") + extra;
  check(`${title}: CPU of the floor to Inlet's`, floorMicros / median(inlets, "cpuMicros"), goal);
  const redisRatio = median(inlets, "redisMicros") / median(floors, "redisMicros");
  check(`${title}: CPU of Redis, Inlet's to the floor's`, redisRatio, redisGoal, "most");
}

/** A refusal against a route that does nothing but refuse. */
async function compareRefusals(
  title: string,
  {
    path,
    status,
    headers = {},
    floorPath = "/hooks/x",
    extraMicros = 0,
  }: {
    readonly path: string;
    readonly status: number;
    readonly headers?: Readonly<Record<string, string>>;
    readonly floorPath?: string;
    /** Of what has to be computed before it can be refused. */
    readonly extraMicros?: number;
  },
) {
  const plan = planOf(small);
  const refused = { ...plan, headers: { ...plan.headers, ...headers }, status };
  const answered = { ...refused, status: 404 };
  const [honos = [], bares = [], inlets = []] = await alternate(
    [{ ...hono, path: floorPath }, answered],
    [{ ...bare, path: floorPath }, answered],
    [inletAt(path), refused],
  );
  process.stdout.write(`\nRefused: ${title} (${status})\n`);
  print(bare.name, bares);
  print(hono.name, honos);
  print("Inlet", inlets);
  const least = median(honos, "cpuMicros") + extraMicros;
  check(`${title}: CPU of the route to Inlet's`, least / median(inlets, "cpuMicros"), GOALS.refused);
  check(`${title}: CPU of node:http to Inlet's`, median(bares, "cpuMicros") / median(inlets, "cpuMicros"));
}

function check(what: string, ratio: number, goal?: number, kind: "least" | "most" = "least"): void {
  process.stdout.write(
    `  ${what} ${ratio.toFixed(2)}${goal === undefined ? "" : ` (goal: at ${kind} ${goal})`}\n`,
  );
  if (goal === undefined || (kind === "least" ? ratio >= goal : ratio <= goal)) return;
  const percent = (Math.abs(1 - ratio / goal) * 100).toFixed(0);
  missed.push(`${what}: ${ratio.toFixed(2)}, goal ${goal}: by ${percent} %`);
}

type Case = readonly [Target, Omit<LoadPlan, "port" | "path">];

/** A list of rounds for each case; they take turns. */
async function alternate(...cases: readonly Case[]): Promise<readonly (readonly Figures[])[]> {
  for (const [target, plan] of cases) {
    let requests = 0;
    for (let times = 0; times < WARM_TIMES && requests < WARM_REQUESTS; times++) {
      const { perSecond } = await measure(target, { ...plan, seconds: WARM_SECONDS });
      requests += perSecond * WARM_SECONDS;
    }
  }
  const all = cases.map((): Figures[] => []);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, [target, plan]] of cases.entries()) all[i]?.push(await measure(target, plan));
  }
  return all;
}

async function measure({ pid, port, path }: Target, plan: Case[1]): Promise<Figures> {
  const cpuBefore = await cpuSecondsOf(pid);
  const redisBefore = await cpuSecondsOf(redisPid);
  const whole: LoadPlan = { ...plan, port, path };
  const { stdout } = await run(process.execPath, [here("load.ts"), JSON.stringify(whole)], {
    maxBuffer: 1 << 20,
  });
  const cpuSeconds = (await cpuSecondsOf(pid)) - cpuBefore;
  const redisSeconds = (await cpuSecondsOf(redisPid)) - redisBefore;
  const result = JSON.parse(stdout) as LoadResult;
  // A channel that is limited takes some.
  if (result.failures > (plan.status === 429 ? result.requests / 1_000 : 0))
    throw new Error(`${result.failures} of ${result.requests} requests failed`);
  return {
    perSecond: result.requests / result.seconds,
    p50Ms: result.p50Ms,
    p99Ms: result.p99Ms,
    cpuMicros: (cpuSeconds * 1e6) / result.requests,
    redisMicros: (redisSeconds * 1e6) / result.requests,
  };
}

/** User and system time of a process, from fields 14 and 15 of /proc/<pid>/stat (proc(5)). */
async function cpuSecondsOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

function print(name: string, rounds: readonly Figures[]): void {
  const spread = (key: keyof Figures, digits: number): string => {
    const all = rounds.map((figures) => figures[key]);
    const [least, most] = [Math.min(...all), Math.max(...all)].map((value) => value.toFixed(digits));
    return `${median(rounds, key).toFixed(digits)} (${least}–${most})`;
  };
  process.stdout.write(
    `  ${name.padEnd(16)} ${spread("perSecond", 0)} req/s  p50 ${median(rounds, "p50Ms").toFixed(2)} ms  p99 ${median(rounds, "p99Ms").toFixed(2)} ms  CPU ${spread("cpuMicros", 1)} µs  Redis ${spread("redisMicros", 1)} µs\n`,
  );
}

function median(rounds: readonly Figures[], key: keyof Figures): number {
  const sorted = rounds.map((figures) => figures[key]).sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** What it takes to sign that much, in µs. */
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

function planOf(body: string): Case[1] {
  return {
    host: "127.0.0.1",
    headers: { "content-type": "application/json", "x-github-event": "push" },
    body,
    idHeader: ID_HEADER,
    connections: CONNECTIONS,
    seconds: SECONDS,
  };
}

function inletAt(path: string): Target {
  return { name: "Inlet", pid: gateway.pid, port: Number(new URL(gateway.origin).port), path };
}

async function startServer(name: string, [file = "", ...args]: readonly string[]): Promise<Target> {
  const child = spawn(process.execPath, [here(file), ...args], { stdio: ["ignore", "pipe", "inherit"] });
  stack.defer(() => void child.kill());
  const [port] = await once(child.stdout, "data");
  return { name, pid: child.pid ?? 0, port: Number(port), path: "/" };
}

/** The paths of a channel's hooks, for each kind of case. */
async function installChannels(): Promise<readonly [string, string, string, string]> {
  const definitions = (more: object = {}) =>
    ["push", "issues", "pull_request"].map((type) => ({ type, ...more }));
  const byHeaders = { typePath: "$headers['x-github-event']", idPath: `$headers['${ID_HEADER}']` };
  const channel = (uid: string, config: object, events: readonly object[]) => ({
    ...{ uid, kind: "webhook", title: uid, config, events },
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

/** A real push payload, cut or filled up to about the size asked for; valid JSON. */
async function bodyOf(bytes: number, first: object = {}): Promise<string> {
  const examples = JSON.parse(
    await readFile(here("../../node_modules/@octokit/webhooks-examples/api.github.com/index.json"), "utf8"),
  ) as readonly { readonly name: string; readonly examples: readonly Record<string, unknown>[] }[];
  const push = examples.find(({ name }) => name === "push")?.examples[0] ?? {};
  const kept: Record<string, unknown> = { ...first };
  for (const [name, value] of Object.entries(push)) {
    if (Buffer.byteLength(JSON.stringify({ ...kept, [name]: value })) <= bytes - 20) kept[name] = value;
  }
  const missing = bytes - Buffer.byteLength(JSON.stringify({ ...kept, filler: "" }));
  return JSON.stringify({ ...kept, filler: "x".repeat(Math.max(0, missing)) });
}
