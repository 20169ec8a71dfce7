import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { type SharedStores, startSharedStores } from "../support/stores.ts";
import { CEILING_MS } from "../support/until.ts";
import { PHASES, type RedisProxy, startRedisProxy } from "./redis-proxy.ts";
import { type Ledger, startSenders } from "./senders.ts";

const TARGETS = ["gateway", "redis", "connection"] as const;
const MOMENTS = [...PHASES, "random"] as const;
const SENDERS = 24;
const GATEWAYS = 2;

/** A gateway behind a proxy of its own, started again whenever it is killed. */
interface Station {
  readonly proxy: RedisProxy;
  gateway: GatewayProcess | undefined;
  readonly start: () => Promise<void>;
}

/** The entries of the streams, compared with the acknowledgements of the senders. */
export interface HookVerdict {
  readonly seconds: number;
  readonly senders: number;
  readonly gateways: number;
  /** The number of kills, by target and moment. */
  readonly strikes: ReadonlyMap<string, number>;
  readonly ledger: Ledger;
  readonly entries: number;
  readonly lost: readonly string[];
  readonly doubled: readonly string[];
}

/**
 * Kills with -9 while senders keep their own ledger: gateways, Redis, and the connection between them (so that the reply is
 * lost after Redis has executed), each before, during and after the script that publishes, and at random moments. At the
 * end every acknowledged event must stand exactly once on its stream, and no other more than once.
 */
export async function runHookKills(kills: number): Promise<HookVerdict> {
  await using stores = await startSharedStores();
  const stations = await Promise.all(Array.from({ length: GATEWAYS }, (_, i) => openStation(stores, i)));
  const [first] = stations;
  if (first?.gateway === undefined) throw new Error("no gateway");
  const hookPath = await installChannel(first.gateway);

  const startedAt = performance.now();
  const strikes = new Map<string, number>();
  const senders = startSenders(
    () => stations.flatMap(({ gateway }) => (gateway === undefined ? [] : [`${gateway.origin}${hookPath}`])),
    SENDERS,
  );
  for (let i = 0; i < kills; i++) {
    await delay(Math.random() * 300);
    const target = TARGETS[i % TARGETS.length] ?? "gateway";
    const moment = MOMENTS[Math.floor(i / TARGETS.length) % MOMENTS.length] ?? "random";
    await strike(stores, target, moment, stations[i % GATEWAYS] ?? first);
    const key = `${target} ${moment}`;
    strikes.set(key, (strikes.get(key) ?? 0) + 1);
  }
  await senders.finish();
  const found = await audit(stores, senders.ledger);
  for (const { gateway, proxy } of stations) {
    await gateway?.[Symbol.asyncDispose]();
    await proxy[Symbol.asyncDispose]();
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  return { seconds, senders: SENDERS, gateways: GATEWAYS, strikes, ledger: senders.ledger, ...found };
}

async function openStation(shared: SharedStores, index: number): Promise<Station> {
  const [server] = shared.servers;
  const proxy = await startRedisProxy(server?.port ?? 0);
  const station: Station = {
    proxy,
    gateway: undefined,
    async start() {
      station.gateway = await startGatewayProcess({
        ...shared.env,
        REDIS_URL: `redis://127.0.0.1:${proxy.port}`,
        INLET_DATA_DIR: join(shared.dir, `gateway-${index}`),
        INLET_DURABILITY: "fsync",
        INLET_LOG_LEVEL: "info",
      });
    },
  };
  await station.start();
  return station;
}

async function installChannel(gateway: GatewayProcess): Promise<string> {
  const types = ["t0", "t1", "t2"].map((type) => ({ type, typePath: "$.type", idPath: "$.id" }));
  const blueprint = await gateway.api<{ id: string }>("POST", "/blueprints", {
    uid: "ledger",
    title: "Ledger",
    channels: [{ uid: "in", kind: "webhook", title: "In", config: {}, events: types }],
  });
  const app = await gateway.api<{ channels: readonly { url: string }[] }>("POST", "/apps/install", {
    blueprintId: blueprint.id,
  });
  return new URL(app.channels[0]?.url ?? "").pathname;
}

/** One kill; resolves when the killed process runs again. */
async function strike(
  stores: SharedStores,
  target: (typeof TARGETS)[number],
  moment: (typeof MOMENTS)[number],
  station: Station,
): Promise<void> {
  const kill = async (cut: () => void): Promise<void> => {
    switch (target) {
      case "gateway":
        station.gateway?.kill("SIGKILL");
        await station.gateway?.exited;
        station.gateway = undefined;
        return;
      case "redis":
        return stores.servers[0]?.restart();
      case "connection":
        return cut();
      default:
        return target satisfies never;
    }
  };
  const struck = Promise.withResolvers<void>();
  const act = (cut: () => void): Promise<void> => kill(cut).then(struck.resolve, struck.reject);
  if (moment === "random" && target !== "connection") await act(() => {});
  else station.proxy.arm(moment === "random" ? "after" : moment, act);
  const timer = setTimeout(() => struck.reject(new Error("nothing was published")), CEILING_MS);
  await struck.promise.finally(() => clearTimeout(timer));
  if (station.gateway === undefined) await station.start();
}

/** Compares the entries of the streams with the acknowledgements of the senders. */
async function audit(
  { client }: SharedStores,
  ledger: Ledger,
): Promise<Pick<HookVerdict, "entries" | "lost" | "doubled">> {
  const seen = new Map<string, number>();
  for (const topic of await client.keys("events.*")) {
    for (const [, fields] of await client.xrange(topic, "-", "+")) {
      const id = fields[fields.indexOf("id") + 1] ?? "";
      seen.set(id, (seen.get(id) ?? 0) + 1);
    }
  }
  return {
    entries: [...seen.values()].reduce((sum, count) => sum + count, 0),
    lost: [...ledger.acknowledged].filter((id) => !seen.has(id)),
    doubled: [...seen].filter(([, count]) => count > 1).map(([id]) => id),
  };
}
