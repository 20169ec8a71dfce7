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

/** Returns which of these processes has a TCP connection from this local port. Without /proc, returns the first process. */
export async function findProcessByPort(pids: readonly number[], port: number): Promise<number | undefined> {
  const table = await readFile("/proc/net/tcp", "utf8").catch(() => "");
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const row = table
    .split("\n")
    .map((line) => line.trim().split(/ +/))
    .find(([, local]) => local?.endsWith(suffix));
  const inode = row?.[9];
  if (inode === undefined) return pids[0];
  for (const pid of pids) {
    const files = await readdir(`/proc/${pid}/fd`).catch(() => []);
    const links = await Promise.all(files.map((file) => readlink(`/proc/${pid}/fd/${file}`).catch(() => "")));
    if (links.includes(`socket:[${inode}]`)) return pid;
  }
  return pids[0];
}
