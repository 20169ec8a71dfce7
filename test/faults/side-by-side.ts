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
import { auditLedger, countsOf, faultsIn, installLedger } from "./ledger.ts";
import {
  oldestServed,
  type PastProgram,
  programBefore,
  releaseBefore,
  SERVED_FROM,
  whyNoHistory,
} from "./past-programs.ts";
import type { Rig, RigOptions, Verdict } from "./rig.ts";
import type { Ledger } from "./senders.ts";

const CLIENTS = 8;
const CHECK_EVERY_MS = 500;
const DRAIN_DELAY_SECONDS = 2;
const NOW = join(import.meta.dirname, "../../src/main.ts");

/**
 * Two gateways of a program of before are replaced by this one, one after the other, on one database and under load; one goes back and
 * comes again. Nothing that was acknowledged is lost or doubled, and nothing is refused. So for the release before, and for the oldest
 * program that this one goes on beside. One that is older yet refuses the database, and so do those once their last traces are
 * cleared away.
 */
export const sideBySide: Rig = async (options) => {
  const why = await whyNoHistory();
  if (why !== undefined) return { lines: [`skipped: ${why}`], faults: [] };
  const dir = await mkdtemp(join(tmpdir(), "inlet-programs-"));
  try {
    const oldest = await oldestServed(dir);
    const before = await releaseBefore(dir);
    const refused = await programBefore(dir, SERVED_FROM);
    const pasts = before.commit === oldest.commit ? [oldest] : [before, oldest];
    const verdicts: Verdict[] = [];
    for (const past of pasts) verdicts.push(await upgrade(past, refused, options));
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
    if (!first) throw new Error("no gateway");
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
      // This one migrates the database; the other goes on beside it, then one of before begins anew there.
      await restart(0, NOW);
      await restart(0, past.main);
      await restart(0, NOW);
      await restart(1, NOW);
    }
    await finish();
    const audit = await auditLedger(stores, ledger);
    const faults = faultsIn(ledger, audit).map((fault) => `beside ${past.name}: ${fault}`);
    faults.push(...(await refuses(stores, older)));
    await promisify(execFile)(process.execPath, [NOW, "--seal-addresses"], {
      env: { ...PROGRAM_ENV, ...envOf(stores, 2, 0) },
    });
    // Those whose channels have plain addresses.
    if (past.migration < SEALED_SINCE) faults.push(...(await refuses(stores, past)));
    return {
      lines: [
        `beside ${past.name}, ${CLIENTS} clients, ${4 * options.rounds} restarts: ${countsOf(ledger, audit).join("; ")}`,
        `${older.name} refuses the database`,
      ],
      faults,
    };
  } finally {
    for (const gateway of gateways) await gateway[Symbol.asyncDispose]();
  }
}

/** From that migration on programs know sealed addresses. */
const SEALED_SINCE = 32;

/** Each request once: what is not answered 200 is a fault. */
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

/** What is wrong with how the program refuses the database. */
async function refuses(stores: SharedStores, { main, name }: PastProgram): Promise<readonly string[]> {
  try {
    // It may not even know of a delay when it stops.
    const { INLET_DRAIN_DELAY_SECONDS: _, ...env } = envOf(stores, 3, 0);
    await using _gateway = await startGatewayProcess(env, { main });
    return [`${name} serves a database that it cannot serve`];
  } catch (error) {
    const told = String(error);
    return /too old to serve|another text/.test(told)
      ? []
      : [`${name} ended otherwise: ${told.slice(0, 500)}`];
  }
}

const envOf = (stores: SharedStores, index: number, port: number): Readonly<Record<string, string>> => ({
  ...stores.env,
  INLET_PORT: String(port),
  INLET_DATA_DIR: join(stores.dir, `gateway-${index}`),
  INLET_DRAIN_DELAY_SECONDS: String(DRAIN_DELAY_SECONDS),
  INLET_LOG_LEVEL: "warn",
});
