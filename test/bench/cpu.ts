import { readFile } from "node:fs/promises";

/** Of the kernel's clock in /proc, on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;
const PAGE_BYTES = 4096;

/** User and system time of a process so far, from fields 14 and 15 of /proc/<pid>/stat (proc(5)). */
export async function cpuSecondsOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** Resident bytes of a process (proc(5), statm). */
export async function rssOf(pid: number): Promise<number> {
  return Number((await readFile(`/proc/${pid}/statm`, "utf8")).split(" ")[1]) * PAGE_BYTES;
}

/** µs of a process for each of `count` things done while `work` runs. */
export async function microsEach(
  pids: readonly number[],
  count: number,
  work: () => Promise<unknown>,
): Promise<readonly number[]> {
  const before = await Promise.all(pids.map(cpuSecondsOf));
  await work();
  const after = await Promise.all(pids.map(cpuSecondsOf));
  return after.map((seconds, i) => ((seconds - (before[i] ?? 0)) * 1e6) / count);
}

/** The value that a quarter of all are below: what else a machine does adds to processor time, and takes nothing from it. */
export function lowerQuartile(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 4)] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** `<p25> µs (<least>–<most>)` */
export function spreadOf(values: readonly number[], digits = 1): string {
  const [least, most] = [Math.min(...values), Math.max(...values)].map((value) => value.toFixed(digits));
  return `${lowerQuartile(values).toFixed(digits)} (${least}–${most})`;
}
