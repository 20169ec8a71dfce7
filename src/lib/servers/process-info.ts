import { execFile } from "node:child_process";
import { readdir, readFile, readlink } from "node:fs/promises";
import { promisify } from "node:util";

const run = promisify(execFile);

/**
 * Returns a value that distinguishes a process from a later process with the same id. Returns `undefined` if the process does
 * not exist or is a zombie.
 *
 * The value is the start time in clock ticks since boot (proc_pid_stat(5), field 22). On systems without /proc, it is the
 * constant "alive".
 */
export async function processIncarnation(pid: number): Promise<string | undefined> {
  if (process.platform !== "linux") return isPidTaken(pid) ? "alive" : undefined;
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "latin1");
    // The command name stands in parentheses, and can itself contain spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

/**
 * Returns whether a process has this working directory. This distinguishes an embedded server from an unrelated process that
 * was given the same id later.
 */
export async function worksIn(pid: number, realDirectory: string): Promise<boolean> {
  try {
    if (process.platform === "linux") return (await readlink(`/proc/${pid}/cwd`)) === realDirectory;
    const { stdout } = await run("lsof", ["-a", "-p", String(pid), "-d", "cwd", "-Fn"]);
    return stdout.split("\n").includes(`n${realDirectory}`);
  } catch {
    return false;
  }
}

/** Returns the ids of all processes with this working directory. Returns `undefined` on systems without /proc. */
export async function findProcessesIn(realDirectory: string): Promise<readonly number[] | undefined> {
  if (process.platform !== "linux") return undefined;
  const pids = (await readdir("/proc")).map(Number).filter((pid) => pid > 0);
  const found = await Promise.all(pids.map((pid) => worksIn(pid, realDirectory)));
  return pids.filter((_, index) => found[index]);
}

/** Returns whether any process has this id, including zombies and processes of other users. */
export function isPidTaken(pid: number): boolean {
  // Ids of 0 and below refer to process groups.
  if (pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
