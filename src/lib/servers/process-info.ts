import { execFile } from "node:child_process";
import { readdir, readFile, readlink } from "node:fs/promises";
import { promisify } from "node:util";

const run = promisify(execFile);

/**
 * Returns a value that distinguishes a process from later processes with the same id: its start time in clock ticks since boot
 * (proc_pid_stat(5), field 22). On systems without /proc, the value is always "alive". Returns `undefined` if the process does not
 * exist or is a zombie.
 */
export async function processIncarnation(pid: number): Promise<string | undefined> {
  if (process.platform !== "linux") return isPidTaken(pid) ? "alive" : undefined;
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "latin1");
    // Search for the last parenthesis, because the command name in parentheses may itself contain spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

/**
 * Returns whether a process has this working directory. If not, the operating system has reused the process id for an unrelated
 * program.
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

/** Returns the ids of all processes with this working directory, or `undefined` on systems without /proc. */
export async function findProcessesIn(realDirectory: string): Promise<readonly number[] | undefined> {
  if (process.platform !== "linux") return undefined;
  const pids = (await readdir("/proc")).map(Number).filter((pid) => pid > 0);
  const found = await Promise.all(pids.map((pid) => worksIn(pid, realDirectory)));
  return pids.filter((_, index) => found[index]);
}

/** Returns whether a process with this id exists. Zombies and processes of other users count too. */
export function isPidTaken(pid: number): boolean {
  // `kill` would treat an id of 0 or below as a process group.
  if (pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
