/**
 * Measures the cost of a delivery with many channels, and with many definitions per channel.
 *
 * The measure is CPU time per request, of the gateway, of Redis and of PostgreSQL, compared with few channels. Each channel is called until
 * it is cached and has its topic. Then rounds alternate. SQL copies the channels, because installing them through the API would take
 * minutes. The copies are equal, like channels of one blueprint. Redis syncs each write.
 *
 * Also measures the startup time of a gateway with these channels and the memory of a cached channel. Prints by how much a goal is missed,
 * and then fails.
 *
 * usage: npm run bench:size [-- <rounds> [<seconds> [<channels>]]]
 */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, readFile, realpath, writeFile } from "node:fs/promises";
import { loadavg } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { startGatewayProcess } from "../support/gateway-process.ts";
import type { CachedChannels } from "./cached-channels.ts";
import { installChannel } from "./channel.ts";
import { cpuSecondsOf, lowerQuartile, median, spreadOf } from "./cpu.ts";
import type { LoadPlan, LoadResult } from "./load.ts";
import { copyChannel } from "./many-channels.ts";
import { startBenchPostgres } from "./postgres.ts";
import { startBenchRedis } from "./redis.ts";
import { bodyOf, createGoals, planOf } from "./rounds.ts";

const [ROUNDS = 5, SECONDS = 3, MOST = 100_000] = process.argv.slice(2).map(Number);
/**
 * Number of channels of the reference. It exceeds the number of concurrent deliveries, because deliveries that share a topic in a script
 * call are cheaper. `FEWEST` measures how much cheaper.
 */
const FEW = 100;
const FEWEST = 10;
const COUNTS = [FEW, FEWEST, 9_000, 30_000, 100_000].filter((count) => count <= MOST);
const DEFINITIONS = 1_000;
const WARM_SECONDS = 4;
const MAX_WARM_RUNS = 40;
const GOALS = { cpu: 1.05, readySeconds: 5, channelBytes: 2_000 };

interface Subject {
  readonly name: string;
  readonly path: string;
  readonly pathsFile?: string;
}

interface Measured {
  readonly perSecond: number;
  readonly gateway: number;
  readonly redis: number;
  readonly postgres: number;
}

const run = promisify(execFile);
const goals = createGoals();
await using stack = new AsyncDisposableStack();
const redis = stack.use(await startBenchRedis());
const redisPid = redis.process.pid ?? 0;
const dir = await realpath(redis.dir);
await mkdir(join(dir, "postgres"));
const postgres = stack.use(await startBenchPostgres(join(dir, "postgres")));
const masterKey = randomBytes(32);
const env = {
  DATABASE_URL: postgres.url,
  INLET_MASTER_KEY: masterKey.toString("base64"),
  REDIS_URL: `unix://${redis.socket}`,
  INLET_DATA_DIR: join(dir, "gateway"),
  INLET_LOG_LEVEL: "warn",
};
const plan = planOf(await bodyOf(468));
process.stdout.write(`machine load ${loadavg()[0]?.toFixed(1)}\n`);

const types = Array.from({ length: DEFINITIONS }, (_, n) => (n === DEFINITIONS / 2 ? "push" : `type_${n}`));
const pathsFile = join(dir, "paths.json");
const { one, thousand } = await install();
const startedMs = performance.now();
const gateway = stack.use(await startGatewayProcess(env));
const readySeconds = (performance.now() - startedMs) / 1_000;
const readyCpuSeconds = await cpuSecondsOf(gateway.pid);
const port = Number(new URL(gateway.origin).port);

const definitions: readonly Subject[] = [
  { name: "1 definition", path: one.path },
  { name: `${DEFINITIONS} definitions`, path: thousand.path },
];
await compare("definitions in one channel", definitions);
const paths: readonly string[] = JSON.parse(await readFile(pathsFile, "utf8"));
const channels = await Promise.all(
  COUNTS.map(async (count): Promise<Subject> => {
    const file = join(dir, `paths-${count}.json`);
    await writeFile(file, JSON.stringify(paths.slice(0, count)));
    return { name: `${count} channels`, path: "", pathsFile: file };
  }),
);
await compare("channels", channels);

process.stdout.write(
  `\nA gateway with ${MOST} channels was ready after ${readySeconds.toFixed(1)} s (${readyCpuSeconds.toFixed(1)} s of a core)\n`,
);
goals.check("seconds until the gateway is ready", readySeconds, GOALS.readySeconds, "most");
const { stdout: line } = await run(process.execPath, [
  ...["--expose-gc", join(import.meta.dirname, "cached-channels.ts")],
]);
const cached = JSON.parse(line) as CachedChannels;
goals.check("bytes of a cached channel, equal to others", cached.equal, GOALS.channelBytes, "most");
goals.check("bytes of a channel with its own secret", cached.secrets, GOALS.channelBytes, "most");
goals.check("bytes of a channel with its own settings", cached.different, GOALS.channelBytes, "most");
goals.check("bytes of a channel with a stream", cached.streams, GOALS.channelBytes, "most");
process.stdout.write(`machine load ${loadavg()[0]?.toFixed(1)}\n`);
goals.tell();

async function install() {
  await using first = await startGatewayProcess(env);
  const single = await installChannel(first, { uid: "one" });
  const many = await installChannel(first, { uid: "thousand", types });
  const { connection } = postgres;
  await copyChannel({ connection, masterKey, appId: single.appId, times: MOST, pathsFile });
  return { one: single, thousand: many };
}

/** Sizes to compare. The first one is the reference. */
async function compare(title: string, subjects: readonly Subject[]): Promise<void> {
  let known = 0;
  let firstCalls: Measured | undefined;
  for (const subject of subjects) {
    const count = await countOf(subject);
    firstCalls = await warm(subject, count, count > known ? known : 0);
    known = count;
  }
  const all = subjects.map((): Measured[] => []);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [index, subject] of subjects.entries()) all[index]?.push(await measure(subject, SECONDS));
  }
  process.stdout.write(
    `\n${ROUNDS} rounds of ${SECONDS} s, lower quartiles (least to most), µs a request\n\n` +
      `| ${title} | requests/s | CPU of the gateway | CPU of Redis | CPU of PostgreSQL |\n|---|---|---|---|---|\n`,
  );
  for (const [index, { name }] of subjects.entries()) {
    const rounds = all[index] ?? [];
    const cells = (["gateway", "redis", "postgres"] as const).map((key) => spreadOf(figuresOf(rounds, key)));
    process.stdout.write(
      `| ${[name, median(figuresOf(rounds, "perSecond")).toFixed(0), ...cells].join(" | ")} |\n`,
    );
  }
  const last = subjects.at(-1);
  if (firstCalls !== undefined && last?.pathsFile !== undefined) {
    const { perSecond, gateway: ofGateway, redis: ofRedis, postgres: ofPostgres } = firstCalls;
    const cells = [ofGateway, ofRedis, ofPostgres].map((value) => value.toFixed(1));
    process.stdout.write(
      `| first call of each channel | ${[perSecond.toFixed(0), ...cells].join(" | ")} |\n`,
    );
  }
  process.stdout.write("\n");
  const [few = []] = all;
  for (const [index, { name }] of subjects.entries()) {
    if (index === 0) continue;
    const ratioOf = (...keys: (keyof Measured)[]) =>
      lowerQuartile(figuresOf(all[index] ?? [], ...keys)) / lowerQuartile(figuresOf(few, ...keys));
    const whole = ratioOf("gateway", "redis", "postgres");
    goals.check(`${name}: total CPU, to that of ${subjects[0]?.name}`, whole, GOALS.cpu, "most");
    goals.check(`${name}: CPU of the gateway alone`, ratioOf("gateway"));
    goals.check(`${name}: CPU of Redis alone`, ratioOf("redis"));
  }
}

function figuresOf(rounds: readonly Measured[], ...keys: readonly (keyof Measured)[]): readonly number[] {
  return rounds.map((round) => keys.reduce((sum, key) => sum + round[key], 0));
}

/** Warms up: calls each channel except the first `known` ones, and runs for a while. Returns the figures of the first run. */
async function warm(subject: Subject, count: number, known: number): Promise<Measured> {
  const first = await measure(subject, WARM_SECONDS, known);
  let requests = first.perSecond * WARM_SECONDS;
  for (let times = 1; times < 2 || (known + requests < count && times < MAX_WARM_RUNS); times++) {
    const { perSecond } = await measure(subject, WARM_SECONDS, known + requests);
    requests += perSecond * WARM_SECONDS;
  }
  return first;
}

async function countOf({ pathsFile: file }: Subject): Promise<number> {
  return file === undefined ? 1 : JSON.parse(await readFile(file, "utf8")).length;
}

async function measure(
  { path, pathsFile: file }: Subject,
  seconds: number,
  from?: number,
): Promise<Measured> {
  const readCpu = async () => ({
    gateway: await cpuSecondsOf(gateway.pid),
    redis: await cpuSecondsOf(redisPid),
    postgres: await postgres.cpuSeconds(),
  });
  const before = await readCpu();
  const whole: LoadPlan = {
    ...plan,
    path,
    port,
    seconds,
    ...(file !== undefined && { pathsFile: file }),
    ...(from !== undefined && { from: Math.round(from) }),
  };
  const { stdout } = await run(process.execPath, [
    join(import.meta.dirname, "load.ts"),
    JSON.stringify(whole),
  ]);
  const { requests, failures, seconds: took } = JSON.parse(stdout) as LoadResult;
  if (failures > 0) throw new Error(`${failures} of ${requests} requests failed`);
  const after = await readCpu();
  const micros = (key: keyof typeof after) => ((after[key] - before[key]) * 1e6) / requests;
  return {
    perSecond: requests / took,
    gateway: micros("gateway"),
    redis: micros("redis"),
    postgres: micros("postgres"),
  };
}
