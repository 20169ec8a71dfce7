/**
 * Compares Inlet with alternatives: self-written receivers and existing tools.
 *
 * Each peer receives a POST, parses its JSON, appends the body with one XADD, and responds 200 after the reply of Redis. Inlet also
 * matches, validates, removes duplicates and records the delivery. All use one Redis that syncs each write, in alternating rounds.
 * Prints by how much a goal is missed, and then fails. Install the peers with test/bench/peers/install.sh.
 *
 * usage: npm run bench:peers [-- <rounds> [<seconds>]]
 */
import { loadavg } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { startPeers } from "./peers/peers.ts";
import { startBenchRedis } from "./redis.ts";
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
const SIZES = [
  ["468 B", 468],
  ["11.7 kB", 11_700],
] as const;

const goals = createGoals();

await using stack = new AsyncDisposableStack();
const redis = stack.use(await startBenchRedis());
const client = stack.adopt(new Redis({ path: redis.socket }), (one) => one.disconnect());
// The client reports errors until the server listens, and then connects.
client.on("error", () => {});
const settings = {
  rounds: ROUNDS,
  seconds: SECONDS,
  redisPid: redis.process.pid ?? 0,
  afterEach: emptyStreams,
};
const baselineCommand = [process.execPath, join(import.meta.dirname, "baseline.ts"), redis.socket];
const baseline = await startServer(stack, "baseline", baselineCommand);
const gateway = stack.use(
  await startGatewayProcess({
    INLET_DATA_DIR: join(redis.dir, "data"),
    REDIS_URL: `unix://${redis.socket}`,
    INLET_LOG_LEVEL: "warn",
  }),
);
const inlet = await installChannel();
const peers = await startPeers({ stack, redisSocket: redis.socket, dir: redis.dir });
process.stdout.write(
  `${ROUNDS} rounds of ${SECONDS} s, machine load ${loadavg()[0]?.toFixed(1)}; medians (least–most)\n`,
);

for (const [title, bytes] of SIZES) {
  const plan = planOf(await bodyOf(bytes));
  const targets = [baseline, inlet, ...peers.map(({ target }) => target)];
  const all = await alternate(
    settings,
    targets.map((target) => [target, plan]),
  );
  process.stdout.write(`\n${title}, ${CONNECTIONS} connections\n`);
  for (const [i, { name }] of targets.entries()) print(name, all[i] ?? []);
  const inletMicros = median(all[1] ?? [], "cpuMicros");
  goals.check(`${title}: CPU of the baseline to Inlet's`, median(all[0] ?? [], "cpuMicros") / inletMicros);
  for (const [i, { target, goal }] of peers.entries()) {
    const ratio = median(all[i + 2] ?? [], "cpuMicros") / inletMicros;
    goals.check(`${title}: CPU of ${target.name} to Inlet's`, ratio, goal);
  }
}
goals.tell();

/** Deletes old entries, because the entries of seven receivers would not fit into memory. */
async function emptyStreams(): Promise<void> {
  for await (const keys of client.scanStream({ type: "stream", count: 1_000 })) {
    for (const key of keys as readonly string[]) await client.xtrim(key, "MAXLEN", 0);
  }
}

async function installChannel(): Promise<Target> {
  const byHeaders = { typePath: "$headers['x-github-event']", idPath: `$headers['${ID_HEADER}']` };
  const events = ["push", "issues", "pull_request"].map((type) => ({ type, ...byHeaders }));
  const channel = { uid: "hooks", kind: "webhook", title: "Hooks", config: {}, events };
  const blueprint = await gateway.api<{ id: string }>("POST", "/blueprints", {
    uid: "bench",
    title: "Bench",
    channels: [channel],
  });
  const app = await gateway.api<{ channels: readonly { url: string }[] }>("POST", "/apps/install", {
    blueprintId: blueprint.id,
  });
  const { port } = new URL(gateway.origin);
  return {
    name: "Inlet",
    pid: gateway.pid,
    port: Number(port),
    path: new URL(app.channels[0]?.url ?? "").pathname,
  };
}
