import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Returns the process ids of a supervisor's gateway processes. */
export async function readProcessIds(supervisor: number): Promise<readonly number[]> {
  const { stdout } = await promisify(execFile)("ps", ["-o", "pid=,args=", "--ppid", String(supervisor)]);
  return stdout
    .split("\n")
    .filter((line) => line.includes("--supervised"))
    .map((line) => Number.parseInt(line, 10));
}
