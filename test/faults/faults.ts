/**
 * Makes faults while ledgers are kept, and fails if a promise is broken: an acknowledged event lost, one doubled or out of order, a
 * request refused that had to be taken. Each rig is a file beside this one.
 *
 * usage: npm run test:faults -- [--only <rig>[,<rig>…]] [--rounds <times, default 1>] [--seed <number>] [--part <text>]
 *
 * A part is one of the burdens of `tenants`, by what its name holds.
 *
 * A round of all takes minutes; for hours: `--rounds 100`. The seed is printed; it repeats the choices, not the machine's speed.
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
    seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 32)) },
  },
});
const rounds = Number(values.rounds);
process.stdout.write(`seed ${values.seed}, rounds ${rounds}\n`);
for (const name of values.only.split(",")) {
  const rig = RIGS[name];
  if (!rig) throw new Error(`there is no rig ${name}, but ${Object.keys(RIGS).join(", ")}`);
  const startedAt = performance.now();
  const { lines, faults } = await rig({ random: seeded(Number(values.seed)), rounds, part: values.part });
  const seconds = (performance.now() - startedAt) / 1_000;
  const told = [`${faults.length === 0 ? "held" : "BROKEN"} in ${seconds.toFixed(0)} s`, ...lines];
  const broken = faults.slice(0, 20).map((fault) => `BROKEN: ${fault}`);
  process.stdout.write(`\n${name}: ${[...told, ...broken].join("\n  ")}\n`);
  if (faults.length > 0) process.exitCode = 1;
}
