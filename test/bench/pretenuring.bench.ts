/**
 * Measures the cost of V8's pretenuring with deliveries of 11.7 kB, on alternating gateways with and without it. V8's decisions depend on
 * the warm-up of each process, so there are several gateways of each kind. Prints the pauses of the garbage collector and the cost of a
 * delivery.
 *
 * usage: node test/bench/pretenuring.bench.ts [<gateways of each> [<rounds> [<seconds>]]]
 */
import { join } from "node:path";
import {
  type GatewayProcess,
  PROGRAM_ENV,
  readMetrics,
  startGatewayProcess,
  UNLIMITED,
} from "../support/gateway-process.ts";
import { installChannel } from "./channel.ts";
import { startBenchRedis } from "./redis.ts";
import { alternate, bodyOf, type Case, planOf, print } from "./rounds.ts";

const [GATEWAYS = 3, ROUNDS = 4, SECONDS = 3] = process.argv.slice(2).map(Number);
const KINDS = [
  { name: "as it is", main: "../../src/main.ts" },
  { name: "pretenuring", main: "pretenuring-gateway.ts" },
] as const;

await using stack = new AsyncDisposableStack();
const redis = stack.use(await startBenchRedis());
const plan = planOf(await bodyOf(11_700));
const gateways: GatewayProcess[] = [];
const cases: Case[] = [];
for (let n = 0; n < 2 * GATEWAYS; n++) {
  const { name, main } = KINDS[n % 2] ?? KINDS[0];
  const env = {
    INLET_DATA_DIR: join(redis.dir, `data-${n}`),
    REDIS_URL: `unix://${redis.socket}?db=${n}`,
    INLET_LOG_LEVEL: "warn",
  };
  const gateway = stack.use(
    await startGatewayProcess(
      { ...PROGRAM_ENV, ...UNLIMITED, ...env },
      { main: join(import.meta.dirname, main) },
    ),
  );
  gateways.push(gateway);
  const { path } = await installChannel(gateway);
  cases.push([{ name, pid: gateway.pid, port: Number(new URL(gateway.origin).port), path }, plan]);
}

const settings = { rounds: ROUNDS, seconds: SECONDS, redisPid: redis.process.pid ?? 0 };
const all = await alternate(settings, cases);
for (const [i, gateway] of gateways.entries()) {
  const { name } = KINDS[i % 2] ?? KINDS[0];
  print(name, all[i] ?? []);
  const text = await readMetrics(gateway.origin);
  const msOf = (kind: string): string => {
    const [, seconds] =
      new RegExp(`^nodejs_gc_duration_seconds_sum\\{kind="${kind}"\\} (.+)$`, "m").exec(text) ?? [];
    return (1_000 * Number(seconds)).toFixed(0);
  };
  process.stdout.write(`    garbage collection: minor ${msOf("minor")} ms, major ${msOf("major")} ms\n`);
}
