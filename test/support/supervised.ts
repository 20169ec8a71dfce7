import { execFile } from "node:child_process";
import { readdir, readFile, readlink } from "node:fs/promises";
import { promisify } from "node:util";

/** Returns the ids of a supervisor's gateway processes, or an empty list for a gateway without a supervisor. */
export async function readProcessIds(supervisor: number): Promise<readonly number[]> {
  // All processes are listed, because `ps --ppid` fails if a process has no children.
  const { stdout } = await promisify(execFile)("ps", ["-eo", "pid=,ppid=,args="]);
  return stdout
    .split("\n")
    .map((line) => line.trim().split(/ +/))
    .filter(([, parent, ...args]) => Number(parent) === supervisor && args.includes("--supervised"))
    .map(([pid]) => Number(pid));
}

/**
 * Returns the process that has a TCP connection from this local port. Needs /proc.
 *
 * @throws Error if none of the processes has such a connection
 */
export async function findProcessByPort(pids: readonly number[], port: number): Promise<number> {
  const table = await readFile("/proc/net/tcp", "utf8");
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  // Connections to different servers can have the same local port.
  const sockets = table
    .split("\n")
    .map((line) => line.trim().split(/ +/))
    .filter(([, local]) => local?.endsWith(suffix))
    .map((row) => `socket:[${row[9]}]`);
  for (const pid of pids) {
    const files = await readdir(`/proc/${pid}/fd`).catch(() => []);
    const links = await Promise.all(files.map((file) => readlink(`/proc/${pid}/fd/${file}`).catch(() => "")));
    if (links.some((link) => sockets.includes(link))) return pid;
  }
  throw new Error(`None of the processes ${pids.join(", ")} has a connection from port ${port}.`);
}
