import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../support/free-port.ts";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { type SharedStores, startSharedStores } from "../support/stores.ts";
import { until } from "../support/until.ts";
import { startBalancer } from "./balancer.ts";
import { installLedger } from "./ledger.ts";
import type { Rig, RigOptions, Verdict } from "./rig.ts";

const GATEWAYS = 2;
const CLIENTS = 16;
const CHECK_EVERY_MS = 500;
/** Longer than two checks of the balancer, because a check may be in flight when a gateway starts to stop. */
const DRAIN_DELAY_SECONDS = 2;

/**
 * Restarts gateways one by one behind a load balancer that checks `/readyz` every 500 ms, while clients send without retries. No request
 * may fail, both with keep-alive connections and with a new connection per request.
 */
export const rollingRestart: Rig = async (options) => {
  await using stores = await startSharedStores();
  const ports = await Promise.all(Array.from({ length: GATEWAYS }, freePort));
  const gateways: GatewayProcess[] = [];
  for (const [index, port] of ports.entries()) gateways.push(await startAt(stores, index, port));
  try {
    const [first] = gateways;
    if (!first) throw new Error("The gateway did not start.");
    const path = await installLedger(first);
    const restart = async (index: number): Promise<void> => {
      gateways[index]?.kill("SIGTERM");
      await gateways[index]?.exited;
      gateways[index] = await startAt(stores, index, ports[index] ?? 0);
    };
    const verdicts: Verdict[] = [];
    for (const keepAlive of [true, false])
      verdicts.push(
        await restartAll(
          { origins: gateways.map(({ origin }) => origin), path, restart, keepAlive },
          options,
        ),
      );
    return {
      lines: verdicts.flatMap(({ lines }) => lines),
      faults: verdicts.flatMap(({ faults }) => faults),
    };
  } finally {
    for (const gateway of gateways) await gateway[Symbol.asyncDispose]();
  }
};

interface Site {
  readonly origins: readonly string[];
  readonly path: string;
  readonly restart: (index: number) => Promise<void>;
  readonly keepAlive: boolean;
}

async function restartAll(
  { origins, path, restart, keepAlive }: Site,
  options: RigOptions,
): Promise<Verdict> {
  const { random, rounds } = options;
  using balancer = startBalancer({ origins, checkEveryMs: CHECK_EVERY_MS, keepAlive });
  const areAllReady = () => until(() => balancer.healthy().length === origins.length, { everyMs: 50 });
  await areAllReady();
  const answers = new Map<number | string, number>();
  let finishing = false;
  const clients = Array.from({ length: CLIENTS }, async (_, client) => {
    for (let n = 0; !finishing; n++) {
      const id = `${keepAlive}-${client}-${n}`;
      const answer = await balancer.post(path, JSON.stringify({ id, type: "t0" }));
      answers.set(answer, (answers.get(answer) ?? 0) + 1);
      await delay(5 + random() * 10);
    }
  });
  for (let round = 0; round < rounds; round++) {
    for (const index of origins.keys()) {
      await delay(random() * 1_000);
      await restart(index);
      await areAllReady();
    }
  }
  finishing = true;
  await Promise.all(clients);
  const how = keepAlive ? "keep-alive connections" : "a connection per request";
  const counts = [...answers].map(([answer, count]) => `${count} × ${answer}`).join(", ");
  const failed = [...answers].filter(([answer]) => answer !== 200);
  return {
    lines: [`${rounds * origins.length} restarts, ${CLIENTS} clients, ${how}: ${counts}`],
    faults: failed.map(([answer, count]) => `${how}: ${count} requests failed: ${answer}`),
  };
}

const startAt = (stores: SharedStores, index: number, port: number): Promise<GatewayProcess> =>
  startGatewayProcess({
    ...stores.env,
    INLET_PORT: String(port),
    INLET_DATA_DIR: join(stores.dir, `gateway-${index}`),
    INLET_DRAIN_DELAY_SECONDS: String(DRAIN_DELAY_SECONDS),
    INLET_LOG_LEVEL: "warn",
  });
