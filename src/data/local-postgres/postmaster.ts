import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { findProcessesIn, isPidTaken, worksIn } from "../../lib/servers/process-info.ts";

/** Returns the process id of the PostgreSQL server in this directory. The server may still run after its gateway has died. */
export async function findPostmaster(clusterDir: string): Promise<number | undefined> {
  const pid = await readPid(pidFileOf(clusterDir));
  return pid !== undefined && (await worksIn(pid, clusterDir)) ? pid : undefined;
}

/**
 * Removes lock files that would wrongly keep PostgreSQL from starting.
 *
 * PostgreSQL refuses to start while a process with the id in its lock file exists. After a crash, that id may belong to another
 * program (common in containers) or to a zombie. The files are removed only if /proc shows no process in the data directory,
 * because all processes of a killed server must have ended first. If no process has the id, PostgreSQL removes its lock file
 * itself.
 */
export async function removeStaleLocks(clusterDir: string, socketPath: string): Promise<void> {
  const lockFiles = [pidFileOf(clusterDir), `${socketPath}.lock`];
  const pids = await Promise.all(lockFiles.map(readPid));
  const stale = lockFiles.filter((_, index) => isPidTaken(pids[index] ?? 0));
  if (stale.length === 0 || (await findProcessesIn(clusterDir))?.length !== 0) return;
  await Promise.all(stale.map((file) => rm(file, { force: true })));
}

const pidFileOf = (clusterDir: string): string => join(clusterDir, "postmaster.pid");

async function readPid(file: string): Promise<number | undefined> {
  const pid = Number.parseInt(await readFile(file, "utf8").catch(() => ""), 10);
  return pid > 1 ? pid : undefined;
}
