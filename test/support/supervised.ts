import { execFile } from "node:child_process";
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
