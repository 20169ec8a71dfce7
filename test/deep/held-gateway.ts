/**
 * Runs `inlet start` with the settings of its environment, and injects faults into the processes of its supervisor. Only the first process
 * starts at once. The others wait for the file `released`. The first process that is about to print the greeting is killed.
 *
 * usage: HELD_DIR=<folder of the files `first`, `released` and `greeter`> node held-gateway.ts
 */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { start } from "../../src/cli/start.ts";
import { loadConfig } from "../../src/config/load.ts";

const POLL_MS = 20;

const dir = process.env.HELD_DIR ?? "";
const isSupervised = process.argv.includes("--supervised");

/** Writes the process id into a new file. Returns false if another process has created the file before. */
function claim(name: string): boolean {
  const path = join(dir, name);
  try {
    writeFileSync(path, String(process.pid), { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

if (isSupervised) {
  const { stdout } = process;
  const write = stdout.write.bind(stdout) as (...args: unknown[]) => boolean;
  stdout.write = (...args: unknown[]) => {
    if (String(args[0]).includes("Inlet listens at") && claim("greeter"))
      process.kill(process.pid, "SIGKILL");
    return write(...args);
  };
  if (!claim("first")) while (!existsSync(join(dir, "released")) && process.connected) await delay(POLL_MS);
}

const loaded = loadConfig(process.env);
if (!loaded.ok) throw new Error(JSON.stringify(loaded.error));
process.exitCode = await start(loaded.value, {
  configFile: undefined,
  isSupervised,
  env: process.env,
  timing: {},
  program: new URL(import.meta.url),
});
