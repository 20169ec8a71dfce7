import { spawn } from "node:child_process";
import { closeSync, openSync, renameSync, statSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { processIncarnation } from "./process-info.ts";

/** A running server process. `exited` resolves with a readable reason when the process has ended, and never rejects. */
export interface ServerProcess {
  readonly pid: number | undefined;
  readonly adopted: boolean;
  readonly exited: Promise<string>;
  signal(signal: NodeJS.Signals, target: "process" | "group"): void;
}

export interface ServerCommand {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly uid?: number;
  readonly gid?: number;
}

/**
 * Environment variables of a server process. The operator's variables are left out, because they could affect the server and may
 * contain secrets.
 */
export const serverEnvironment = (): Readonly<Record<string, string>> => ({
  PATH: process.env.PATH ?? "/usr/bin:/bin",
  LC_ALL: "C",
  TZ: "UTC",
});

const MAX_LOG_BYTES = 4 * 1024 * 1024;

/**
 * Spawns a server as the leader of its own session and process group. The server can then outlive Ctrl-C in the terminal, and the
 * end of this process, until its clients have finished. Its output goes to a file, because a pipe would break when this process
 * ends.
 */
export function spawnServer(command: ServerCommand, logFile: string): ServerProcess {
  const log = openLog(logFile);
  try {
    const child = spawn(command.file, command.args, {
      cwd: command.cwd,
      env: command.env,
      detached: true,
      stdio: ["ignore", log, log],
      ...(command.uid !== undefined && { uid: command.uid }),
      ...(command.gid !== undefined && { gid: command.gid }),
    });
    const exited = new Promise<string>((resolve) => {
      child.once("error", (error) => resolve(error.message));
      child.once("exit", (code, signal) => resolve(signal ? `ended by ${signal}` : `exit code ${code}`));
    });
    return serverProcess(child.pid, false, exited);
  } finally {
    closeSync(log);
  }
}

/**
 * Takes over a server that is already running, but is not a child of this process. Polls for its end, because only child processes
 * emit an exit event.
 */
export function adoptServer(pid: number, pollMs: number): ServerProcess {
  return serverProcess(pid, true, pollUntilGone(pid, pollMs));
}

async function pollUntilGone(pid: number, pollMs: number): Promise<string> {
  const incarnation = await processIncarnation(pid);
  while (incarnation !== undefined && (await processIncarnation(pid)) === incarnation) {
    await delay(pollMs, undefined, { ref: false });
  }
  return "gone (it was started by an earlier process, so its exit code is unknown)";
}

function serverProcess(pid: number | undefined, adopted: boolean, exited: Promise<string>): ServerProcess {
  let gone = false;
  const reason = exited.then((text) => {
    gone = true;
    return text;
  });
  return {
    pid,
    adopted,
    exited: reason,
    signal(signal, target) {
      if (gone || pid === undefined) return;
      if (target === "group") send(-pid, signal);
      send(pid, signal);
    },
  };
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // Ignore ESRCH, which means that the process has just ended. `exited` will resolve shortly.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/**
 * Opens the log file for appending. A file at the size limit is first renamed to `<file>.1`, so that a repeatedly failing server
 * cannot fill the disk.
 */
function openLog(logFile: string): number {
  const bytes = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0;
  if (bytes > MAX_LOG_BYTES) renameSync(logFile, `${logFile}.1`);
  return openSync(logFile, "a", 0o600);
}
