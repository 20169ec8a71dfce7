/**
 * Measures the cost of deliveries and rejections, and the latency of deliveries at parts of the maximum rate.
 *
 * The baseline of a delivery is a minimal receiver (`baseline.ts`), that of a rejection a Hono route that only responds. Redis syncs each
 * write. The load generator is a separate process. Prints by how much a goal is missed, and then fails.
 *
 * With `--against`, compares the gateway of this checkout with that of another one instead. A figure fails only if the whole 95 % interval
 * of its ratio is beyond 3 %.
 *
 * With `--traces 0.01`, compares a gateway that exports the traces of this share of the deliveries with one that exports none. Use many
 * short rounds, such as `--rounds 40 --seconds 1.5`, because the difference is smaller than the noise of a round.
 *
 * With `--processes 4`, compares a gateway with this many processes with one that has a single process. The CPU time of the supervisor counts.
 *
 * usage: npm run bench [-- --rounds 5 --seconds 3 --against <another checkout> --traces 0 --processes 1]; a second or less skips the warm-up
 */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { loadavg } from "node:os";
import { join, resolve } from "node:path";
import { text as readText } from "node:stream/consumers";
import { compileHmac } from "../../src/lib/secrets/hmac.ts";
import { installApp } from "../support/channels.ts";
import { PROGRAM_ENV, startGatewayProcess, UNLIMITED } from "../support/gateway-process.ts";
import { startOtlpReceiver } from "../support/otlp-receiver.ts";
import { readProcessIds } from "../support/supervised.ts";
import { confidenceInterval, median, spreadOf } from "./cpu.ts";
import { readFlags } from "./flags.ts";
import { startBenchRedis } from "./redis.ts";
import type { RejectionResponse } from "./rejections.ts";
import {
  alternate,
  bodyOf,
  CONNECTIONS,
  createGoals,
  type Figures,
  ID_HEADER,
  measure,
  medianOf,
  type Plan,
  planOf,
  print,
  startServer,
  type Target,
} from "./rounds.ts";

const { rounds, seconds, against, traces, processes } = readFlags({
  rounds: 5,
  seconds: 3,
  against: "",
  traces: 0,
  processes: 1,
});
const SECRET = "a-secret-of-the-bench";
const SHARES_OF_MAXIMUM = [0.5, 0.75];
/** Share of the maximum rate of one process that several processes get together. */
const SHARE_OF_PROCESSES = 0.5;
/** More connections than a gateway has in flight at these rates, unless it stalls. */
const ARRIVAL_CONNECTIONS = 256;
const GOALS = {
  rejected: 1.1,
  redis: 2.5,
  fastPath: 1.1,
  p99Ms: { share: 0.5, most: 10 },
  processes: 1.15,
} as const;
/** A figure is worse than the other checkout's if it is greater by this factor. */
const WORSE = 1.03;

interface Delivery {
  readonly title: string;
  readonly channel: "plain" | "sliced" | "signed";
  readonly plan: Plan;
  /** Minimum ratio of the baseline's CPU time to Inlet's. */
  readonly goal: number;
}

interface Rejection {
  readonly title: string;
  readonly channel: "plain" | "signed" | "limited" | "unknown";
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** CPU time of the computation that must precede the rejection. */
  readonly extraMicros?: number;
}

const small = await bodyOf(468);
const large = await bodyOf(11_700);
const signedBody = await bodyOf(468, { id: "{id}" });
const deliveries: readonly Delivery[] = [
  { title: "468 B", channel: "plain", plan: planOf(small), goal: 0.75 },
  { title: "11.7 kB", channel: "plain", plan: planOf(large), goal: 0.95 },
  { title: "11.7 kB, with 5 kB published", channel: "sliced", plan: planOf(large), goal: 0.75 },
  {
    title: "468 B, signed like GitHub",
    channel: "signed",
    plan: { ...planOf(signedBody), secret: SECRET },
    goal: 0.75,
  },
];
const rejections: readonly Rejection[] = [
  { title: "an unknown address", channel: "unknown", status: 404 },
  { title: "above the rate limit of a channel", channel: "limited", status: 429 },
  {
    title: "a body that is too large",
    channel: "plain",
    status: 413,
    headers: { "content-length": "99999999" },
  },
  {
    title: "a wrong signature",
    channel: "signed",
    status: 401,
    headers: { "x-hub-signature-256": `sha256=${"0".repeat(64)}` },
    extraMicros: hmacMicros(small),
  },
];

const goals = createGoals();
let databases = 0;
await using stack = new AsyncDisposableStack();
const redis = stack.use(await startBenchRedis());
const redisPid = redis.process.pid ?? 0;
const settings = { rounds, seconds, redisPid };
const targetOf = await startInlet("Inlet");
process.stdout.write(
  `${rounds} rounds of ${seconds} s, Node.js ${process.version}, machine load ${loadavg()[0]?.toFixed(1)}; medians (least–most)\n`,
);
if (traces > 0) await compareWithTraces();
else if (processes > 1) await compareWithProcesses();
else if (against === "") await compareWithBaselines();
else
  await compareWithCheckout(await startInlet("the other", { main: join(resolve(against), "src/main.ts") }));
goals.tell();

async function compareWithBaselines(): Promise<void> {
  const baseline = await startServer(stack, "baseline", "baseline.ts", redis.socket);
  let maxRate = 0;
  for (const delivery of deliveries) {
    const rate = await compareDelivery(delivery, baseline);
    maxRate ||= rate;
  }
  await compareReaders();
  for (const rejection of rejections) await compareRejection(rejection);
  for (const share of SHARES_OF_MAXIMUM) await measureArrivals(share, maxRate * share, baseline);
}

/** Returns the gateway's rate. */
async function compareDelivery({ title, channel, plan, goal }: Delivery, baseline: Target): Promise<number> {
  const [baselines = [], inlets = []] = await alternate(settings, [
    [baseline, plan],
    [targetOf(channel), plan],
  ]);
  process.stdout.write(`\n${title}\n`);
  print(baseline.name, baselines);
  print("Inlet", inlets);
  const extra = plan.secret === undefined ? 0 : hmacMicros(plan.body);
  if (extra > 0) process.stdout.write(`  HMAC alone, included in Inlet's time: ${extra.toFixed(1)} µs\n`);
  const ratio = (medianOf(baselines, "cpuMicros") + extra) / medianOf(inlets, "cpuMicros");
  goals.check(`${title}: CPU of the baseline to Inlet's`, ratio, goal);
  const redisRatio = medianOf(inlets, "redisMicros") / medianOf(baselines, "redisMicros");
  const redisGoal = title === deliveries[0]?.title ? GOALS.redis : undefined;
  goals.check(`${title}: CPU of Redis, Inlet's to the baseline's`, redisRatio, redisGoal, "most");
  return medianOf(inlets, "rate");
}

/** Compares a delivery on the fast path with the same delivery handed off to `node:http` by a header. */
async function compareReaders(): Promise<void> {
  const plan = planOf(small);
  const nodePlan = { ...plan, headers: { ...plan.headers, "x-left-to-node": "\u00e9" } };
  const [nodes = [], inlets = []] = await alternate(settings, [
    [targetOf("plain"), nodePlan],
    [targetOf("plain"), plan],
  ]);
  process.stdout.write("\n468 B, read by Node's HTTP server\n");
  print("by Node", nodes);
  print("on the fast path", inlets);
  const ratio = medianOf(nodes, "cpuMicros") / medianOf(inlets, "cpuMicros");
  goals.check("CPU by Node to that on the fast path", ratio, GOALS.fastPath);
}

/** Compares a rejection with a route that only sends the same response. */
async function compareRejection(rejection: Rejection): Promise<void> {
  const { title, channel, status, extraMicros = 0 } = rejection;
  const plan = planOfRejection(rejection);
  await using servers = new AsyncDisposableStack();
  const response = JSON.stringify(await fetchRejection(targetOf(channel), plan));
  const hono = await startServer(servers, "Hono route", "rejections.ts", "hono", response);
  const bare = await startServer(servers, "node:http", "rejections.ts", "bare", response);
  const [honos = [], bares = [], inlets = []] = await alternate(settings, [
    [{ ...hono, path: "/hooks/x" }, plan],
    [{ ...bare, path: "/hooks/x" }, plan],
    [targetOf(channel), plan],
  ]);
  process.stdout.write(`\nRejected: ${title} (${status})\n`);
  print(bare.name, bares);
  print(hono.name, honos);
  print("Inlet", inlets);
  const inletMicros = medianOf(inlets, "cpuMicros");
  const ratio = (medianOf(honos, "cpuMicros") + extraMicros) / inletMicros;
  goals.check(`${title}: CPU of the route to Inlet's`, ratio, GOALS.rejected);
  goals.check(`${title}: CPU of node:http to Inlet's`, medianOf(bares, "cpuMicros") / inletMicros);
}

function planOfRejection({ status, headers }: Rejection): Plan & { readonly status: number } {
  const plan = planOf(small);
  return { ...plan, headers: { ...plan.headers, ...headers }, status };
}

async function fetchRejection(
  { port, path }: Target,
  { body, headers, status }: ReturnType<typeof planOfRejection>,
): Promise<RejectionResponse> {
  for (;;) {
    const sending = request(`http://127.0.0.1:${port}${path}`, {
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

/** Measures latencies while requests arrive at random times, alternating with the baseline at the same rate. */
async function measureArrivals(share: number, perSecond: number, baseline: Target): Promise<void> {
  const plan = { ...planOf(small), seconds: 2 * seconds, connections: ARRIVAL_CONNECTIONS, perSecond };
  const inlets: Figures[] = [];
  const baselines: Figures[] = [];
  for (let round = 0; round < rounds; round++) {
    inlets.push(await measure(targetOf("plain"), plan, redisPid));
    baselines.push(await measure(baseline, plan, redisPid));
  }
  const percent = `${100 * share} %`;
  process.stdout.write(`\n468 B at ${percent} of the maximum, ${perSecond.toFixed(0)} requests/s\n`);
  for (const [name, all] of [["baseline", baselines] as const, ["Inlet", inlets] as const]) {
    print(name, all);
    process.stdout.write(
      `${" ".repeat(18)} p99.9 ${medianOf(all, "p999Ms").toFixed(1)} ms, delay of the generator ${medianOf(all, "latenessP99Ms").toFixed(1)} ms (p99)\n`,
    );
  }
  const goal = share === GOALS.p99Ms.share ? GOALS.p99Ms.most : undefined;
  const p99Ms = medianOf(inlets, "p99Ms");
  goals.check(`p99 at ${percent} of the maximum, ms`, p99Ms, goal, "most");
  goals.check(`p99 at ${percent}, Inlet's to the baseline's`, p99Ms / medianOf(baselines, "p99Ms"));
}

async function compareWithCheckout(otherOf: typeof targetOf): Promise<void> {
  for (const { title, channel, plan } of [
    ...deliveries,
    ...rejections.map((rejection) => ({ ...rejection, plan: planOfRejection(rejection) })),
  ]) {
    const [others = [], inlets = []] = await alternate(settings, [
      [otherOf(channel), plan],
      [targetOf(channel), plan],
    ]);
    process.stdout.write(`\n${title}\n`);
    print("the other", others);
    print("Inlet", inlets);
    const isRejection = "status" in plan;
    for (const key of isRejection ? (["cpuMicros"] as const) : (["cpuMicros", "redisMicros"] as const)) {
      const ratios = inlets.map((round, i) => round[key] / (others[i]?.[key] ?? Number.NaN));
      const { low, high } = confidenceInterval(ratios);
      const what = `${title}: ${key === "cpuMicros" ? "CPU" : "CPU of Redis"}, Inlet's to the other's`;
      process.stdout.write(`  ${what} ${low.toFixed(3)} to ${high.toFixed(3)} (95 % interval)\n`);
      goals.check(`${what}, lower end`, low, WORSE, "most");
    }
  }
}

/** Compares the gateway with one that exports traces to a receiver. */
async function compareWithTraces(): Promise<void> {
  const receiver = stack.use(await startOtlpReceiver());
  const tracedOf = await startInlet("with traces", {
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.origin,
      OTEL_TRACES_SAMPLER: "traceidratio",
      OTEL_TRACES_SAMPLER_ARG: String(traces),
    },
  });
  for (const { title, channel, plan } of deliveries) {
    const before = receiver.spans.length;
    const [plain = [], traced = []] = await alternate(settings, [
      [targetOf(channel), plan],
      [tracedOf(channel), plan],
    ]);
    process.stdout.write(`\n${title}\n`);
    print("without traces", plain);
    print("with traces", traced);
    const ratios = traced.map(({ cpuMicros }, i) => cpuMicros / (plain[i]?.cpuMicros ?? Number.NaN));
    const total = sumCpuMicros(traced) / sumCpuMicros(plain);
    const { low, high } = confidenceInterval(ratios);
    process.stdout.write(
      `  ${receiver.spans.length - before} spans received; ratios ${spreadOf(ratios, 3)}, mean ${low.toFixed(3)} to ${high.toFixed(3)} (95 % interval)\n`,
    );
    goals.check(`${title}: CPU with traces to that without, of all rounds`, total);
    goals.check(`${title}: CPU with traces to that without, median`, median(ratios), WORSE, "most");
  }
}

/**
 * Compares a gateway that has several processes with one that has a single process, at the same rate per process. Without such a rate, the
 * processes would share the load of a single one, and smaller batches cost more CPU time per event.
 */
async function compareWithProcesses(): Promise<void> {
  const name = `${processes} processes`;
  const severalOf = await startInlet(name, { env: { INLET_PROCESSES: String(processes) } });
  for (const { title, channel, plan } of deliveries) {
    const [singles = [], several = []] = await alternate(settings, [
      [targetOf(channel), plan],
      [severalOf(channel), plan],
    ]);
    const each = (SHARE_OF_PROCESSES * medianOf(singles, "rate")) / processes;
    const [pacedSingles = [], pacedSeveral = []] = await alternate(settings, [
      [targetOf(channel), { ...plan, perSecond: each }],
      [severalOf(channel), { ...plan, perSecond: each * processes, connections: CONNECTIONS * processes }],
    ]);
    process.stdout.write(`\n${title}, as fast as ${CONNECTIONS} connections get responses\n`);
    print("1 process", singles);
    print(name, several);
    checkProcesses(`${title}, the load of one process`, singles, several);
    process.stdout.write(`\n${title}, ${each.toFixed(0)} requests/s per process\n`);
    print("1 process", pacedSingles);
    print(name, pacedSeveral);
    checkProcesses(`${title}, the same load per process`, pacedSingles, pacedSeveral, GOALS.processes);
  }
}

function checkProcesses(
  what: string,
  singles: readonly Figures[],
  several: readonly Figures[],
  goal?: number,
): void {
  const ratioOf = (key: keyof Figures): number => medianOf(several, key) / medianOf(singles, key);
  goals.check(
    `${what}: CPU with ${processes} processes to that with one`,
    ratioOf("cpuMicros"),
    goal,
    "most",
  );
  goals.check(`${what}: CPU of Redis with ${processes} processes to that with one`, ratioOf("redisMicros"));
}

/** Returns the CPU time per request over all rounds, in which long rounds count more. */
function sumCpuMicros(rounds: readonly Figures[]): number {
  const sum = (value: (one: Figures) => number) => rounds.reduce((total, one) => total + value(one), 0);
  return sum(({ cpuMicros, requests }) => cpuMicros * requests) / sum(({ requests }) => requests);
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

/** Starts a gateway with a channel for each case. Returns a function that returns the target of a channel. */
async function startInlet(
  name: string,
  { main, env = {} }: { readonly main?: string; readonly env?: Readonly<Record<string, string>> } = {},
) {
  const database = databases++;
  const gateway = stack.use(
    await startGatewayProcess(
      {
        ...PROGRAM_ENV,
        ...UNLIMITED,
        INLET_DATA_DIR: join(redis.dir, `data-${database}`),
        REDIS_URL: `unix://${redis.socket}?db=${database}`,
        INLET_LOG_LEVEL: "warn",
        ...env,
      },
      main === undefined ? {} : { main },
    ),
  );
  const byHeaders = { typePath: "$headers['x-github-event']", idPath: `$headers['${ID_HEADER}']` };
  const definitions = (more: object = {}) =>
    ["push", "issues", "pull_request"].map((type) => ({ type, ...more }));
  const channel = (uid: string, config: object, events: readonly object[]) => ({
    ...{ uid, kind: "webhook", title: uid, config, events },
  });
  const app = await installApp(gateway, [
    channel("plain", {}, definitions(byHeaders)),
    channel("sliced", {}, definitions({ ...byHeaders, payloadPath: "$.repository" })),
    channel("signed", { preset: "github" }, definitions()),
    channel("limited", { limits: { requestsPerSecond: 1 } }, definitions(byHeaders)),
  ]);
  await gateway.api("PUT", `/apps/${app.id}/channels/signed`, { config: { secrets: [{ value: SECRET }] } });
  const port = Number(new URL(gateway.origin).port);
  const pids = [gateway.pid, ...(await readProcessIds(gateway.pid))];
  return (uid: Rejection["channel"] | Delivery["channel"]): Target => {
    const url = app.channels.find((one) => one.uid === uid)?.url;
    const path = url ? new URL(url).pathname : `/hooks/ch_${"0".repeat(36)}`;
    return { name, pids, port, path };
  };
}
