import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { findProcessesIn, processIncarnation, worksIn } from "../../lib/process-info.ts";

/**
 * The postmaster that runs on this directory, left by a gateway that died. The number in postmaster.pid may be stale and
 * in use by another program (in a container it often is); PostgreSQL would then refuse to start for ever, so the file is
 * removed, but only where /proc shows that no process at all works in the directory: what is left of a server that was
 * killed must be gone first.
 */
export async function findPostmaster(clusterDir: string): Promise<number | undefined> {
  const pidFile = join(clusterDir, "postmaster.pid");
  const pid = Number.parseInt(await readFile(pidFile, "utf8").catch(() => ""), 10);
  if (!(pid > 1) || (await processIncarnation(pid)) === undefined) return undefined;
  if (await worksIn(pid, clusterDir)) return pid;
  if ((await findProcessesIn(clusterDir))?.length === 0) await rm(pidFile, { force: true });
  return undefined;
}
