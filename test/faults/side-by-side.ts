import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { freePort } from "../support/free-port.ts";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { type SharedStores, startSharedStores } from "../support/stores.ts";
import { until } from "../support/until.ts";
import { startBalancer } from "./balancer.ts";
import { newestUnserved, oldestServed, type PastProgram, releaseBefore } from "./earlier-versions.ts";
import { auditLedger, countsOf, faultsIn, installLedger } from "./ledger.ts";
import type { Rig, RigOptions, Verdict } from "./rig.ts";
import type { Ledger } from "./senders.ts";

const CLIENTS = 8;
const CHECK_EVERY_MS = 500;
const DRAIN_DELAY_SECONDS = 2;
const NOW = join(import.meta.dirname, "../../src/main.ts");

/**
 * Upgrades two gateways of an earlier version one by one, on the same database and under load. One of them is downgraded and upgraded
 * again. No request may fail, and no acknowledged event may be lost or duplicated.
 *
 * Runs with the previous release and with the oldest supported version. Versions that are older must reject the database. The earlier
 * version also stores addresses in plain text, until this version seals them. Throws if the git history lacks an earlier version.
 */
export const sideBySide: Rig = async (options) => {
  const dir = await mkdtemp(join(tmpdir(), "inlet-programs-"));
  try {
    const oldest = await oldestServed(dir);
    const before = await releaseBefore(dir);
    const unsupported = await newestUnserved(dir);
    const pasts = before.commit === oldest.commit ? [oldest] : [before, oldest];
    const verdicts: Verdict[] = [];
    for (const past of pasts) verdicts.push(await upgrade(past, unsupported, options));
    return {
      lines: verdicts.flatMap(({ lines }) => lines),
      faults: verdicts.flatMap(({ faults }) => faults),
    };
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
};

async function upgrade(past: PastProgram, older: PastProgram, options: RigOptions): Promise<Verdict> {
  await using stores = await startSharedStores();
  const ports = [await freePort(), await freePort()];
  const start = (main: string, index: number): Promise<GatewayProcess> =>
    startGatewayProcess(envOf(stores, index, ports[index] ?? 0), { main });
  const gateways = [await start(past.main, 0)];
  await query(stores, "UPDATE cluster SET plain_addresses = true");
  gateways.push(await start(past.main, 1));
  try {
    const [first] = gateways;
    if (!first) throw new Error("The gateway did not start.");
    const path = await installLedger(first);
    const origins = gateways.map(({ origin }) => origin);
    using balancer = startBalancer({ origins, checkEveryMs: CHECK_EVERY_MS, keepAlive: true });
    const areAllReady = () => until(() => balancer.healthy().length === origins.length, { everyMs: 50 });
    const restart = async (index: number, main: string): Promise<void> => {
      gateways[index]?.kill("SIGTERM");
      await gateways[index]?.exited;
      gateways[index] = await start(main, index);
      await areAllReady();
      await delay(500 + options.random() * 1_000);
    };
    await areAllReady();
    const { ledger, finish } = startClients(balancer.post, path, options);
    for (let round = 0; round < options.rounds; round++) {
      if (round > 0) for (const index of [0, 1]) await restart(index, past.main);
      // The first restart migrates the database while the other gateway keeps running. Then an earlier version starts on it again.
      await restart(0, NOW);
      await restart(0, past.main);
      await restart(0, NOW);
      await restart(1, NOW);
    }
    await finish();
    const audit = await auditLedger(stores, ledger);
    const faults = faultsIn(ledger, audit).map((fault) => `next to ${past.name}: ${fault}`);
    faults.push(...(await findRejectionFaults(stores, older)));
    const plain = await query(stores, "SELECT FROM channels WHERE id IS NOT NULL");
    if (plain > 0) faults.push(`${plain} addresses are stored in plain text`);
    return {
      lines: [
        `next to ${past.name}, ${CLIENTS} clients, ${4 * options.rounds} restarts: ${countsOf(ledger, audit).join("; ")}`,
        `${older.name} rejects the database`,
      ],
      faults,
    };
  } finally {
    for (const gateway of gateways) await gateway[Symbol.asyncDispose]();
  }
}

/** Runs a statement on the database of the gateways. Returns the number of its rows. */
async function query({ env }: SharedStores, text: string): Promise<number> {
  const client = new pg.Client(env.DATABASE_URL);
  await client.connect();
  try {
    return (await client.query(text)).rowCount ?? 0;
  } finally {
    await client.end();
  }
}

/** Starts clients that never retry. Each response other than 200 is a fault. */
function startClients(
  post: (path: string, body: string) => Promise<number | string>,
  path: string,
  { random }: RigOptions,
) {
  const ledger: Ledger = { acknowledged: new Set(), unanswered: new Set(), wrong: [], attempts: 0 };
  let isFinishing = false;
  const clients = Array.from({ length: CLIENTS }, async (_, client) => {
    for (let n = 0; !isFinishing; n++) {
      const id = `${client}-${n}`;
      const answer = await post(path, JSON.stringify({ id, type: "t0" }));
      ledger.attempts++;
      if (answer === 200) ledger.acknowledged.add(id);
      else ledger.wrong.push(`${answer} to ${id}`);
      await delay(5 + random() * 20);
    }
  });
  return {
    ledger,
    async finish() {
      isFinishing = true;
      await Promise.all(clients);
    },
  };
}

async function findRejectionFaults(
  stores: SharedStores,
  { main, name }: PastProgram,
): Promise<readonly string[]> {
  try {
    // An old version may not know this setting.
    const { INLET_DRAIN_DELAY_SECONDS: _, ...env } = envOf(stores, 3, 0);
    await using _gateway = await startGatewayProcess(env, { main });
    return [`${name} starts on a database that it should reject`];
  } catch (error) {
    const message = String(error);
    return /too old|(another|different) text/.test(message)
      ? []
      : [`${name} failed with another error: ${message.slice(0, 500)}`];
  }
}

const envOf = (stores: SharedStores, index: number, port: number): Readonly<Record<string, string>> => ({
  ...stores.env,
  INLET_PORT: String(port),
  INLET_DATA_DIR: join(stores.dir, `gateway-${index}`),
  INLET_DRAIN_DELAY_SECONDS: String(DRAIN_DELAY_SECONDS),
  INLET_LOG_LEVEL: "warn",
});
