/**
 * A worker for registrations in a process of its own, so that a test can kill it. The parent sends how far the clock is ahead, in ms.
 */
import { openDatabase } from "../../src/data/database.ts";
import { openKeyring } from "../../src/data/keyring/keyring.ts";
import { createConnections } from "../../src/gateway/connections.ts";
import { createLog } from "../../src/log.ts";
import { createMetrics } from "../../src/metrics.ts";
import { createOutbound } from "../../src/net/create-outbound.ts";
import { startRegistrar } from "../../src/registrations/registrar.ts";
import { readPresets } from "../../src/verify/presets.ts";

const { DATABASE_URL = "", INLET_MASTER_KEY = "", INLET_HOOKS_URL = "", AHEAD_MS = "0" } = process.env;

let aheadMs = Number(AHEAD_MS);
process.on("message", (ms: number) => {
  aheadMs = ms;
});
process.on("disconnect", () => process.exit());

const clock = (): number => Date.now() + aheadMs;
const { db } = openDatabase({ connection: { url: DATABASE_URL }, maxConnections: 10 });
const keyring = await openKeyring({ db, masterKey: Buffer.from(INLET_MASTER_KEY, "base64"), clock });
const outbound = createOutbound({ allowNetworks: ["127.0.0.0/8"] });
const log = createLog({ level: "silent" });
startRegistrar({
  db,
  keyring,
  presets: readPresets(),
  hooksUrl: INLET_HOOKS_URL,
  outbound,
  credentialsOf: createConnections({ db, keyring, outbound, clock, log }).credentialsOf,
  clock,
  log,
  metrics: createMetrics(),
  wakes: { store: async () => true },
  timing: { tickMs: 10, leaseMs: 2_000, settleMs: 0 },
});
process.send?.("ready");
