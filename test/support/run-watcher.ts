/**
 * Cleans up after a test run ends in any way. When standard input closes, it ends the run's leftover processes and removes its folders.
 * A process belongs to the run when it works in one of the folders or has the first folder as `TMPDIR`.
 *
 * usage: node run-watcher.ts <folder for temporary files> [<further folder> …]
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { rm } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";

const GRACE_MS = 10_000;
const CHECK_EVERY_MS = 50;

const folders = process.argv.slice(2);
for await (const _ of process.stdin);
await end("SIGINT", GRACE_MS);
await end("SIGKILL", GRACE_MS);
for (const folder of folders) await rm(folder, { recursive: true, force: true });

/** Sends each leftover process the signal once, including processes that appear later, and waits for them to end. */
async function end(signal: NodeJS.Signals, graceMs: number): Promise<void> {
  const signaled = new Set<number>();
  for (const since = performance.now(); performance.now() - since < graceMs; await delay(CHECK_EVERY_MS)) {
    const left = findLeft();
    if (left.length === 0) return;
    for (const pid of left) {
      if (signaled.has(pid)) continue;
      signaled.add(pid);
      try {
        process.kill(pid, signal);
      } catch {
        // The process has already ended.
      }
    }
  }
}

/** Finds the run's leftover processes. Without /proc the list is empty, and only the folders are removed. */
function findLeft(): readonly number[] {
  const pids = attempt(() => readdirSync("/proc").map(Number).filter(Boolean)) ?? [];
  return pids.filter((pid) => {
    const cwd = attempt(() => readlinkSync(`/proc/${pid}/cwd`)) ?? "";
    if (folders.some((folder) => cwd === folder || cwd.startsWith(`${folder}/`))) return true;
    const environment = attempt(() => readFileSync(`/proc/${pid}/environ`, "latin1")) ?? "";
    return environment.split("\0").includes(`TMPDIR=${folders[0]}`);
  });
}

/** Returns `undefined` when the process has just ended or belongs to another user. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
