import { readdir, readFile } from "node:fs/promises";

/** Returns the nice values of a process's threads with this name, from Linux's /proc/pid/task/tid/stat (proc(5)). */
export async function nicesOf(threadName: string, pid: number = process.pid): Promise<readonly number[]> {
  const nices: number[] = [];
  for (const id of await readdir(`/proc/${pid}/task`)) {
    const stat = await readFile(`/proc/${pid}/task/${id}/stat`, "utf8").catch(() => "");
    const nameEnd = stat.lastIndexOf(")");
    const nice = stat.slice(nameEnd + 2).split(" ")[16];
    if (stat.slice(stat.indexOf("(") + 1, nameEnd) === threadName) nices.push(Number(nice));
  }
  return nices;
}
