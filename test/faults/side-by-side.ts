import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { freePort } from "../support/free-port.ts";
import { type GatewayProcess, PROGRAM_ENV, startGatewayProcess } from "../support/gateway-process.ts";
import { type SharedStores, startSharedStores } from "../support/stores.ts";
import { until } from "../support/until.ts";
import { startBalancer } from "./balancer.ts";
import {
  oldestServed,
  type PastProgram,
  programBefore,
  releaseBefore,
  SERVED_FROM,
  whyNoHistory,
} from "./earlier-versions.ts";
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
 * Runs with the previous release and with the oldest supported version. Versions that are older must reject the database. The
 * earlier version must also reject it after `inlet seal-addresses`, if it does not know sealed addresses.
 */
export const sideBySide: Rig = async (options) => {
  const reason = await whyNoHistory();
  if (reason !== undefined) return { lines: [`skipped: ${reason}`], faults: [] };
  const dir = await mkdtemp(join(tmpdir(), "inlet-programs-"));
  try {
    const oldest = await oldestServed(dir);
    const before = await releaseBefore(dir);
    const unsupported = await programBefore(dir, SERVED_FROM);
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
    await promisify(execFile)(process.execPath, [NOW, "seal-addresses"], {
      env: { ...PROGRAM_ENV, ...envOf(stores, 2, 0) },
    });
    // Versions before `SEALED_SINCE` cannot read sealed addresses, so they must reject the database.
    if (past.migration < SEALED_SINCE) faults.push(...(await findRejectionFaults(stores, past)));
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

/** First migration whose versions know sealed addresses. */
const SEALED_SINCE = 32;

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
    return /too old to serve|another text/.test(message)
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
