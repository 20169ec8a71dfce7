import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { findProcessesIn, isPidTaken, worksIn } from "../../lib/servers/process-info.ts";

/** The postmaster that runs on this directory, left by a gateway that died. */
export async function findPostmaster(clusterDir: string): Promise<number | undefined> {
  const pid = await readPid(pidFileOf(clusterDir));
  return pid !== undefined && (await worksIn(pid, clusterDir)) ? pid : undefined;
}

/**
 * The number in a stale lock file may exist all the same: used by another program by now (in a container it often is),
 * or a zombie that nobody has waited for. PostgreSQL would then refuse to start for ever, so the file is removed; but only
 * where /proc shows that no process at all works in the directory, for what is left of a killed server must be gone
 * first. Where the number is free, PostgreSQL sees to its files itself.
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
