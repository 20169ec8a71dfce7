import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { startSharedStores } from "../support/stores.ts";
import { until } from "../support/until.ts";
import { auditLedger, countsOf, faultsIn, installLedger } from "./ledger.ts";
import type { Rig, RigOptions, Verdict } from "./rig.ts";
import { startSenders } from "./senders.ts";

/** With `everysec`, Redis delays writes by up to two seconds while an fsync runs. Unwritten data is lost when it is killed. */
const POLICIES = [
  { policy: "always", durability: "fsync", fsyncMs: 150 },
  { policy: "everysec", durability: "process", fsyncMs: 3_000 },
] as const;
const SENDERS = 16;
const KILLS_A_ROUND = 4;

/**
 * Kills Redis repeatedly while its disk is slow. With `always`, no acknowledged event may be lost. The run with `everysec` is the control:
 * it must lose events, otherwise the first result has no meaning.
 */
export const slowFsync: Rig = async (options) => {
  const dir = await mkdtemp(join(tmpdir(), "inlet-fsync-"));
  try {
    const library = join(dir, "slow-fsync.so");
    const source = join(import.meta.dirname, "slow-fsync.c");
    await promisify(execFile)("cc", ["-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"]);
    const verdicts: Verdict[] = [];
    for (const policy of POLICIES) verdicts.push(await killOnSlowDisk(library, policy, options));
    return {
      lines: verdicts.flatMap(({ lines }) => lines),
      faults: verdicts.flatMap(({ faults }) => faults),
    };
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
};

async function killOnSlowDisk(
  library: string,
  { policy, durability, fsyncMs }: (typeof POLICIES)[number],
  { random, rounds }: RigOptions,
): Promise<Verdict> {
  await using stores = await startSharedStores(["--appendfsync", policy], {
    LD_PRELOAD: library,
    SLOW_FSYNC_MS: String(fsyncMs),
  });
  await using gateway = await startGatewayProcess({ ...stores.env, INLET_DURABILITY: durability });
  const hook = `${gateway.origin}${await installLedger(gateway)}`;
  const senders = startSenders(() => [hook], { count: SENDERS, random });
  const { ledger } = senders;
  for (let kill = 0; kill < rounds * KILLS_A_ROUND; kill++) {
    const before = ledger.acknowledged.size;
    await until(() => ledger.acknowledged.size > before + SENDERS);
    await delay(1_000 + random() * 2_000);
    await stores.servers[0]?.restart();
  }
  await senders.finish();
  const audit = await auditLedger(stores, ledger);
  const isControl = policy === "everysec";
  return {
    lines: [
      `appendfsync ${policy}, fsync delayed by ${fsyncMs} ms, ${rounds * KILLS_A_ROUND} kills:`,
      ...countsOf(ledger, audit).map((line) => `  ${line}`),
    ],
    faults: isControl
      ? audit.lost.length === 0
        ? ["the control run with `everysec` lost no events, so this machine cannot test `always`"]
        : faultsIn(ledger, { ...audit, lost: [] })
      : faultsIn(ledger, audit),
  };
}
