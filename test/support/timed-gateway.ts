/**
 * Runs a gateway like `src/main.ts`, with the lease times given as arguments. Tests that kill gateways need leases shorter than 30 s.
 *
 * usage: node timed-gateway.ts [<JSON of SourcesTiming> [<JSON of HandlersTiming>]]
 */
import { loadConfig } from "../../src/config/load.ts";
import { startGateway } from "../../src/gateway.ts";
import { createLog } from "../../src/log.ts";

const loaded = loadConfig(process.env);
if (!loaded.ok) throw new Error(JSON.stringify(loaded.error));
const config = loaded.value;
const stopping = new AbortController();
process.on("SIGTERM", () => stopping.abort());
await using gateway = await startGateway(config, {
  log: createLog({ level: config.logLevel }),
  signal: stopping.signal,
  sourcesTiming: JSON.parse(process.argv[2] ?? "{}"),
  handlersTiming: JSON.parse(process.argv[3] ?? "{}"),
});
await gateway.greet(async (text) => void process.stdout.write(text));
if (!stopping.signal.aborted)
  await new Promise((resolve) => stopping.signal.addEventListener("abort", resolve));
