/** Runs a fault test and returns its verdict. */
export type Rig = (options: RigOptions) => Promise<Verdict>;

export interface RigOptions {
  /** Seeded random numbers from 0 to 1. */
  readonly random: () => number;
  /** Number of rounds, from `--rounds`. */
  readonly rounds: number;
  /** Number of processes of each gateway, from `--processes`. Only `hook-kills`, `source-kills` and `refusals` use it. */
  readonly processes: number;
  /** Runs only the faults or loads whose names contain this text. `undefined` runs all. Only `source-kills` and `tenants` use it. */
  readonly part?: string | undefined;
  /** Prints the progress. */
  readonly print: (text: string) => void;
}

export interface Verdict {
  readonly lines: readonly string[];
  /** Violated guarantees. The rig passes if the list is empty. */
  readonly faults: readonly string[];
}

/** Creates a seeded random generator (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export const linesOf = (counts: ReadonlyMap<string, number>): readonly string[] =>
  [...counts].sort().map(([key, count]) => `  ${key.padEnd(18)} ${count}`);

export const formatProcesses = (count: number): string =>
  count === 1 ? "one process" : `${count} processes`;

/**
 * Returns the names that contain the text of `--part`.
 *
 * @throws Error if no name contains it, because a rig without faults would always pass
 */
export function selectPart<T extends string>(names: readonly T[], part = ""): readonly T[] {
  const selected = names.filter((name) => name.includes(part));
  if (selected.length > 0) return selected;
  const known = names.map((name) => `"${name}"`).join(", ");
  throw new Error(`No name contains the --part "${part}". Use a part of one of: ${known}`);
}

/** Runs a step. Prints its name first and its duration afterwards, so that the last line names a step that hangs or fails. */
export async function runStep<T>(
  print: RigOptions["print"],
  name: string,
  run: () => T | Promise<T>,
): Promise<T> {
  print(`  ${name}:`);
  const startedAtMs = performance.now();
  const result = await run();
  print(` ${((performance.now() - startedAtMs) / 1_000).toFixed(1)} s\n`);
  return result;
}

/** Returns the quantile of the numbers; `share` is 0 to 1. */
export function quantile(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
