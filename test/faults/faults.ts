/**
 * Injects faults, records all events, and fails if a guarantee is violated. No acknowledged event may be lost, no event may be
 * duplicated or out of order, and no valid request may be rejected. Each rig is a file in this folder.
 *
 * usage: npm run test:faults -- [--only <rig>[,<rig>…]] [--rounds <count, default 1>] [--seed <number>] [--part <text>]
 *        [--processes <count, default 1>]
 *
 * `--part` selects the loads of the rig `tenants`, or the faults of the rig `source-kills`, whose name contains the text. `--processes`
 * starts this many processes of each gateway in the rigs `hook-kills`, `source-kills` and `refusals`.
 *
 * One round of all rigs takes several minutes. For a run of hours, use `--rounds 100`. The printed seed repeats the random choices, but
 * not the speed of the machine.
 */
import { parseArgs } from "node:util";
import { clocks } from "./clocks.ts";
import { heavySchemas } from "./heavy-schemas.ts";
import { hookKills } from "./hook-kills.ts";
import { nearlyFull } from "./nearly-full.ts";
import { refusals } from "./refusals.ts";
import { type Rig, seeded } from "./rig.ts";
import { rollingRestart } from "./rolling-restart.ts";
import { sideBySide } from "./side-by-side.ts";
import { slowFsync } from "./slow-fsync.ts";
import { sourceKills } from "./source-kills.ts";
import { tenants } from "./tenants.ts";

const RIGS: Readonly<Record<string, Rig>> = {
  "hook-kills": hookKills,
  "source-kills": sourceKills,
  refusals,
  clocks,
  "rolling-restart": rollingRestart,
  "slow-fsync": slowFsync,
  "heavy-schemas": heavySchemas,
  "nearly-full": nearlyFull,
  tenants,
  "side-by-side": sideBySide,
};

const { values } = parseArgs({
  options: {
    only: { type: "string", default: Object.keys(RIGS).join(",") },
    rounds: { type: "string", default: "1" },
    part: { type: "string" },
    processes: { type: "string", default: "1" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 32)) },
  },
});
const rounds = Number(values.rounds);
process.stdout.write(`seed ${values.seed}, rounds ${rounds}\n`);
for (const name of values.only.split(",")) {
  const rig = RIGS[name];
  if (!rig) throw new Error(`Unknown rig "${name}". Use one of: ${Object.keys(RIGS).join(", ")}`);
  const startedAt = performance.now();
  const { lines, faults } = await rig({
    random: seeded(Number(values.seed)),
    rounds,
    part: values.part,
    processes: Number(values.processes),
    print: (text) => void process.stdout.write(text),
  });
  const seconds = (performance.now() - startedAt) / 1_000;
  const summary = [`${faults.length === 0 ? "passed" : "FAILED"} in ${seconds.toFixed(0)} s`, ...lines];
  const violations = faults.slice(0, 20).map((fault) => `VIOLATION: ${fault}`);
  process.stdout.write(`\n${name}: ${[...summary, ...violations].join("\n  ")}\n`);
  if (faults.length > 0) process.exitCode = 1;
}
