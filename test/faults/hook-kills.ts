import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { type SharedStores, startSharedStores } from "../support/stores.ts";
import { findProcessByPort, readProcessIds } from "../support/supervised.ts";
import { CEILING_MS, until } from "../support/until.ts";
import { auditLedger, countsOf, faultsIn, installLedger } from "./ledger.ts";
import { PHASES, type RedisProxy, startRedisProxy } from "./redis-proxy.ts";
import { formatProcesses, linesOf, type Rig, runStep } from "./rig.ts";
import { startSenders } from "./senders.ts";

type Target = "gateway" | "process" | "redis" | "connection";
const TARGETS: readonly Target[] = ["gateway", "redis", "connection"];
const MOMENTS = [...PHASES, "random"] as const;
const SENDERS = 24;
const GATEWAYS = 2;

interface Strike {
  readonly target: Target;
  readonly moment: (typeof MOMENTS)[number];
  readonly processes: number;
  /** Chooses the process that is killed at a random moment. */
  readonly random: () => number;
}

/** A gateway behind a separate Redis proxy. It is restarted whenever it is killed. */
interface Station {
  readonly proxy: RedisProxy;
  gateway: GatewayProcess | undefined;
  readonly start: () => Promise<void>;
}

/**
 * Kills gateways, Redis, and connections between them (so that a reply is lost after Redis has executed the script). Each is killed
 * before, during and after the publish script, and at random times, while senders record their events. At the end every acknowledged
 * event must be stored exactly once, and no event more than once.
 *
 * With several processes for each gateway, a kill of a gateway is one of its supervisor, and processes that publish are killed too.
 */
export const hookKills: Rig = async ({ random, rounds, processes, print }) => {
  await using stores = await startSharedStores();
  const stations = await Promise.all(
    Array.from({ length: GATEWAYS }, (_, i) => openStation(stores, i, processes)),
  );
  const targets: readonly Target[] = processes > 1 ? [...TARGETS, "process"] : TARGETS;
  const [first] = stations;
  if (first?.gateway === undefined) throw new Error("The gateway did not start.");
  const hookPath = await installLedger(first.gateway);

  const strikes = new Map<string, number>();
  const senders = startSenders(
    () => stations.flatMap(({ gateway }) => (gateway === undefined ? [] : [`${gateway.origin}${hookPath}`])),
    { count: SENDERS, random },
  );
  // Each target is killed once at each moment.
  const total = rounds * targets.length * MOMENTS.length;
  for (let i = 0; i < total; i++) {
    await delay(random() * 300);
    const target = targets[i % targets.length] ?? "gateway";
    const moment = MOMENTS[Math.floor(i / targets.length) % MOMENTS.length] ?? "random";
    const station = stations[Math.floor(random() * GATEWAYS)] ?? first;
    const key = `${target} ${moment}`;
    await runStep(print, `kill ${i + 1} of ${total}, ${key}`, () =>
      strike(stores, station, { target, moment, processes, random }),
    );
    strikes.set(key, (strikes.get(key) ?? 0) + 1);
  }
  await senders.finish();
  const audit = await auditLedger(stores, senders.ledger);
  for (const { gateway, proxy } of stations) {
    await gateway?.[Symbol.asyncDispose]();
    await proxy[Symbol.asyncDispose]();
  }
  return {
    lines: [
      `${SENDERS} senders, ${GATEWAYS} gateways with ${formatProcesses(processes)} each, one Redis; kills:`,
      ...linesOf(strikes),
      ...countsOf(senders.ledger, audit),
    ],
    faults: faultsIn(senders.ledger, audit),
  };
};

async function openStation(shared: SharedStores, index: number, processes: number): Promise<Station> {
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
        INLET_PROCESSES: String(processes),
      });
    },
  };
  await station.start();
  return station;
}

/** Resolves when the killed process runs again. */
async function strike(
  stores: SharedStores,
  station: Station,
  { target, moment, processes, random }: Strike,
): Promise<void> {
  /** @param port port from which the connection of the publish reaches the proxy. `undefined` at a random moment. */
  const kill = async (cut: () => void, port?: number): Promise<void> => {
    switch (target) {
      case "gateway":
        station.gateway?.kill("SIGKILL");
        await station.gateway?.exited;
        station.gateway = undefined;
        return;
      case "process": {
        const supervisor = station.gateway?.pid ?? 0;
        const ids = await readProcessIds(supervisor);
        const victim =
          port === undefined ? ids[Math.floor(random() * ids.length)] : await findProcessByPort(ids, port);
        if (victim === undefined) throw new Error("The gateway has no process to kill.");
        process.kill(victim, "SIGKILL");
        await until(async () => {
          const running = await readProcessIds(supervisor);
          return running.length === processes && !running.includes(victim);
        });
        return;
      }
      case "redis":
        return stores.servers[0]?.restart();
      case "connection":
        return cut();
      default:
        return target satisfies never;
    }
  };
  const struck = Promise.withResolvers<void>();
  const act = (cut: () => void, port?: number): Promise<void> =>
    kill(cut, port).then(struck.resolve, struck.reject);
  if (moment === "random" && target !== "connection") await act(() => {});
  else station.proxy.arm(moment === "random" ? "after" : moment, act);
  const timer = setTimeout(() => struck.reject(new Error("no event was published in time")), CEILING_MS);
  await struck.promise.finally(() => clearTimeout(timer));
  if (station.gateway === undefined) await station.start();
}
