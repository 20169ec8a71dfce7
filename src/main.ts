import { createRequire } from "node:module";
import { parseConfig, renderHelp } from "./config.ts";
import { runRotation } from "./gateway/rotate-master-key.ts";
import { runSetUp } from "./gateway/setup.ts";
import { DataDirInUseError } from "./gateway/stores.ts";
import { startGateway } from "./gateway.ts";
import { createLog } from "./log.ts";

/** Exit codes. 128 + the signal's number: cut off by a second signal. */
const EXIT = { drained: 0, failed: 1, wrongSettings: 2, dataDirInUse: 3 } as const;
const SET_UP_EXIT = { done: EXIT.drained, refused: EXIT.wrongSettings } as const;
/** SIGHUP: the terminal is closed. */
const SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;
const SAME_SIGNAL_MS = 500;

async function main(): Promise<number> {
  const parsed = parseConfig(process.env, process.argv.slice(2));
  if (!parsed.ok) {
    const lines = parsed.error.map(({ path, message }) => `  ${path}: ${message}`);
    process.stderr.write(`Inlet does not start: these settings are wrong.\n${lines.join("\n")}\n`);
    return EXIT.wrongSettings;
  }
  const command = parsed.value;
  if (command.kind === "help") {
    process.stdout.write(renderHelp());
    return EXIT.drained;
  }
  if (command.kind === "version") {
    const { version } = createRequire(import.meta.url)("../package.json") as { readonly version: string };
    process.stdout.write(`${version}\n`);
    return EXIT.drained;
  }

  const { config } = command;
  const applies = command.kind === "apply";
  const rotates = command.kind === "rotateMasterKey";
  // Standard output is for the plan, and for what was done.
  const log = createLog({
    level: config.logLevel,
    ...((applies || rotates) && { destination: process.stderr }),
  });
  const stopping = new AbortController();
  onSignals(stopping, (signal) => log.info({ event: "gateway.stopping", signal }, "stopping"));
  // A reader that closes the output (`npm start | head`) is no reason to stop receiving.
  process.stdout.on("error", () => {});
  let started = false;
  try {
    const print = (text: string) => void process.stdout.write(text);
    if (rotates) {
      await runRotation(config, { log, signal: stopping.signal, print });
      return EXIT.drained;
    }
    if (applies) {
      const complain = (text: string) => void process.stderr.write(text);
      const run = { ...command, env: process.env, log, signal: stopping.signal, print, complain };
      return SET_UP_EXIT[await runSetUp(config, run)];
    }
    await using gateway = await startGateway(config, { log, signal: stopping.signal });
    started = true;
    process.stdout.write(gateway.greeting);
    await aborted(stopping.signal);
  } catch (error) {
    if (stopping.signal.aborted) {
      if (error !== stopping.signal.reason)
        log.warn({ event: "gateway.stopped", err: error }, "stopped with an error");
      return applies || rotates ? EXIT.failed : EXIT.drained;
    }
    // For the person who starts it, beside the log and whatever its level.
    if (!started) {
      const what = rotates
        ? "The change of the master key has not ended; call it again"
        : "Inlet does not start";
      process.stderr.write(`${what}: ${error instanceof Error ? error.message : error}\n`);
    }
    if (error instanceof DataDirInUseError) return EXIT.dataDirInUse;
    log.fatal({ event: "gateway.failed", err: error }, "gateway failed");
    return EXIT.failed;
  }
  log.info({ event: "gateway.stopped" }, "stopped");
  return EXIT.drained;
}

/**
 * The first signal drains, the second cuts. One that follows at once is the first again: a terminal, or `timeout`, sends it
 * to the whole group, and npm in that group hands on what it got itself.
 */
function onSignals(stopping: AbortController, tell: (signal: string) => void): void {
  let firstAtMs = 0;
  for (const [signal, number] of Object.entries(SIGNALS)) {
    process.on(signal, () => {
      if (stopping.signal.aborted) {
        if (performance.now() - firstAtMs > SAME_SIGNAL_MS) process.exit(128 + number);
        return;
      }
      firstAtMs = performance.now();
      tell(signal);
      stopping.abort(new Error(`stopped by ${signal}`));
    });
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

process.exitCode = await main();
