/**
 * Cleans up behind a run of the tests, however that has ended: when standard input does, it ends the processes that the run has left
 * and removes its folders. By those they are known: they work in one, or were given the first for their temporary files.
 *
 * usage: node run-watcher.ts <folder for temporary files> [<further folder> …]
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { rm } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";

const GRACE_MS = 10_000;
const LOOK_EVERY_MS = 50;

const folders = process.argv.slice(2);
for await (const _ of process.stdin);
await end("SIGINT", GRACE_MS);
await end("SIGKILL", GRACE_MS);
for (const folder of folders) await rm(folder, { recursive: true, force: true });

/** Tells them once, those that come later as well, and waits for them. */
async function end(signal: NodeJS.Signals, graceMs: number): Promise<void> {
  const told = new Set<number>();
  for (const since = performance.now(); performance.now() - since < graceMs; await delay(LOOK_EVERY_MS)) {
    const left = findLeft();
    if (left.length === 0) return;
    for (const pid of left) {
      if (told.has(pid)) continue;
      told.add(pid);
      try {
        process.kill(pid, signal);
      } catch {
        // It has ended by itself.
      }
    }
  }
}

/** None where there is no /proc: then folders alone are removed. */
function findLeft(): readonly number[] {
  const pids = attempt(() => readdirSync("/proc").map(Number).filter(Boolean)) ?? [];
  return pids.filter((pid) => {
    const cwd = attempt(() => readlinkSync(`/proc/${pid}/cwd`)) ?? "";
    if (folders.some((folder) => cwd === folder || cwd.startsWith(`${folder}/`))) return true;
    const environment = attempt(() => readFileSync(`/proc/${pid}/environ`, "latin1")) ?? "";
    return environment.split("\0").includes(`TMPDIR=${folders[0]}`);
  });
}

/** Undefined of a process that has just ended, or is another's. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
