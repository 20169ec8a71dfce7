import { readFile } from "node:fs/promises";

/** Clock ticks per second in /proc, the same on every Linux that Node supports. */
const TICKS_PER_SECOND = 100;
const PAGE_BYTES = 4096;

/** Returns the user and system time of a process, from fields 14 and 15 of /proc/<pid>/stat (proc(5)). */
export async function cpuSecondsOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

export async function sumCpuSeconds(pids: readonly number[]): Promise<number> {
  return (await Promise.all(pids.map(cpuSecondsOf))).reduce((sum, seconds) => sum + seconds, 0);
}

/** Returns the resident bytes of a process (proc(5), statm). */
export async function rssOf(pid: number): Promise<number> {
  return Number((await readFile(`/proc/${pid}/statm`, "utf8")).split(" ")[1]) * PAGE_BYTES;
}

/** Returns the CPU time of a process per operation in µs, while `work` performs `count` operations. */
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

/** Returns the lower quartile. It is more robust than the median, because other load can only increase CPU times. */
export function lowerQuartile(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 4)] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** Returns the 95 % interval of the mean. */
export function confidenceInterval(values: readonly number[]): {
  readonly low: number;
  readonly high: number;
} {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
  const degrees = values.length - 1;
  // Approximates the 0.975 quantile of Student's t distribution. It is off by 2 % at 4 degrees of freedom, and by less above.
  const t = 1.96 + 2.4 / degrees + 4.3 / degrees ** 2;
  const half = t * Math.sqrt(variance / values.length);
  return { low: mean - half, high: mean + half };
}

/** Formats figures as `<p25> µs (<least>–<most>)`. */
export function spreadOf(values: readonly number[], digits = 1): string {
  const [least, most] = [Math.min(...values), Math.max(...values)].map((value) => value.toFixed(digits));
  return `${lowerQuartile(values).toFixed(digits)} (${least}–${most})`;
}
