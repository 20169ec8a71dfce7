import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Redis } from "ioredis";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { startSharedStores } from "../support/stores.ts";
import { until } from "../support/until.ts";
import { auditLedger, countsOf, faultsIn, installLedger } from "./ledger.ts";
import { quantile, type Rig } from "./rig.ts";
import { startSenders } from "./senders.ts";

/** Makes Redis reject writes. Returns a function that ends this state. */
type StartRejecting = (redis: Redis) => Promise<() => Promise<unknown>>;

const set = (redis: Redis, name: string, value: string) => redis.config("SET", name, value);

const REJECTIONS: Readonly<Record<string, StartRejecting>> = {
  async OOM(redis) {
    await set(redis, "maxmemory", "1");
    return () => set(redis, "maxmemory", "0");
  },
  async MISCONF(redis) {
    const [, before = ""] = (await redis.config("GET", "dir")) as string[];
    const gone = await mkdtemp(join(tmpdir(), "inlet-misconf-"));
    await set(redis, "dir", gone);
    await rm(gone, { recursive: true });
    await set(redis, "save", "3600 1");
    await redis.bgsave();
    await until(async () => (await redis.info("persistence")).includes("rdb_last_bgsave_status:err"));
    return async () => {
      await set(redis, "dir", before);
      await set(redis, "save", "");
    };
  },
  async NOREPLICAS(redis) {
    await set(redis, "min-replicas-to-write", "1");
    return () => set(redis, "min-replicas-to-write", "0");
  },
  async READONLY(redis) {
    // Makes Redis a replica of a master that does not exist.
    await redis.replicaof("127.0.0.1", 1);
    return () => redis.replicaof("NO", "ONE");
  },
};

const SENDERS = 12;
const LONGEST_MS = 4_000;

/**
 * Makes Redis reject all writes for a while, with each error in turn, while senders record their events. Senders must get 503 responses
 * and `/readyz` must fail. Both must recover when Redis accepts writes again, without losing or duplicating events.
 */
export const refusals: Rig = async ({ random, rounds, processes }) => {
  await using stores = await startSharedStores(["--enable-protected-configs", "local"]);
  await using gateway = await startGatewayProcess({
    ...stores.env,
    INLET_DURABILITY: "fsync",
    INLET_PROCESSES: String(processes),
  });
  const [server] = stores.servers;
  if (!server) throw new Error("no Redis");
  const hook = `${gateway.origin}${await installLedger(gateway)}`;
  const readiness = async (): Promise<number> => (await fetch(`${gateway.origin}/readyz`)).status;
  const senders = startSenders(() => [hook], { count: SENDERS, random });
  const { ledger } = senders;
  const [unreadyMs, readyMs]: [number[], number[]] = [[], []];
  const elapsed = async (wait: () => Promise<void>): Promise<number> => {
    const startedAt = performance.now();
    await wait();
    return performance.now() - startedAt;
  };
  let times = 0;
  for (let round = 0; round < rounds; round++) {
    for (const startRejecting of Object.values(REJECTIONS)) {
      const before = ledger.acknowledged.size;
      await until(() => ledger.acknowledged.size > before + 2 * SENDERS);
      const stopRejecting = await startRejecting(server.client);
      unreadyMs.push(await elapsed(() => until(async () => (await readiness()) === 503, { everyMs: 50 })));
      await delay(random() * LONGEST_MS);
      await stopRejecting();
      readyMs.push(await elapsed(() => until(async () => (await readiness()) === 200, { everyMs: 50 })));
      times++;
    }
  }
  await senders.finish();
  const audit = await auditLedger(stores, ledger);
  const ms = (numbers: readonly number[]): string => `at most ${quantile(numbers, 1).toFixed(0)} ms`;
  return {
    lines: [
      `${times} times: ${Object.keys(REJECTIONS).join(", ")}; ${SENDERS} senders`,
      ...countsOf(ledger, audit),
      `not ready after ${ms(unreadyMs)}, ready again after ${ms(readyMs)}`,
    ],
    faults: faultsIn(ledger, audit),
  };
};
