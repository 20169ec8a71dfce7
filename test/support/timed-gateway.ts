/**
 * Runs `inlet start` with the settings of its environment and a different timing. Tests that kill gateways need leases shorter than 15 s.
 * A supervisor starts its processes with this program too, so they have the same timing.
 *
 * usage: TIMED_GATEWAY=<JSON of the timing> node timed-gateway.ts
 */
import { start } from "../../src/cli/start.ts";
import { loadConfig } from "../../src/config/load.ts";

const loaded = loadConfig(process.env);
if (!loaded.ok) throw new Error(JSON.stringify(loaded.error));
process.exitCode = await start(loaded.value, {
  configFile: undefined,
  isSupervised: process.argv.includes("--supervised"),
  env: process.env,
  timing: JSON.parse(process.env.TIMED_GATEWAY ?? "{}"),
  program: new URL(import.meta.url),
});
