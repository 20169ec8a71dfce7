import { execFile } from "node:child_process";
import { readdir, readFile, readlink } from "node:fs/promises";
import { promisify } from "node:util";

const run = promisify(execFile);

/**
 * Tells one life of a process id from the next: its start time in clock ticks since boot (proc_pid_stat(5), field
 * 22), or the constant "alive" where there is no /proc. Undefined: no such process, or a zombie that only awaits its
 * parent.
 */
export async function processIncarnation(pid: number): Promise<string | undefined> {
  if (process.platform !== "linux") return isPidTaken(pid) ? "alive" : undefined;
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "latin1");
    // The command's name, in parentheses, may hold spaces and parentheses itself.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

/** True when the process works in that directory, which is how a server of ours is told from a reused process id. */
export async function worksIn(pid: number, realDirectory: string): Promise<boolean> {
  try {
    if (process.platform === "linux") return (await readlink(`/proc/${pid}/cwd`)) === realDirectory;
    const { stdout } = await run("lsof", ["-a", "-p", String(pid), "-d", "cwd", "-Fn"]);
    return stdout.split("\n").includes(`n${realDirectory}`);
  } catch {
    return false;
  }
}

/** All processes that work in that directory; undefined where the system has no way to tell (no /proc). */
export async function findProcessesIn(realDirectory: string): Promise<readonly number[] | undefined> {
  if (process.platform !== "linux") return undefined;
  const pids = (await readdir("/proc")).map(Number).filter((pid) => pid > 0);
  const found = await Promise.all(pids.map((pid) => worksIn(pid, realDirectory)));
  return pids.filter((_, index) => found[index]);
}

/** True for any process of that number, a zombie or another user's included. */
export function isPidTaken(pid: number): boolean {
  // 0 and below address process groups.
  if (pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
