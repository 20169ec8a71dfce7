/** A fault that is made while ledgers are kept, and the verdict over them. */
export type Rig = (options: RigOptions) => Promise<Verdict>;

export interface RigOptions {
  /** From 0 to 1, the same for the same seed. */
  readonly random: () => number;
  /** How often the fault is made: 1 by default, more by a flag. */
  readonly rounds: number;
  /** Of a rig that has several: those whose names hold this text; undefined: all. */
  readonly part?: string | undefined;
}

export interface Verdict {
  /** Counts, for a person. */
  readonly lines: readonly string[];
  /** Broken promises; none: the rig passes. */
  readonly faults: readonly string[];
}

/** Mulberry32: the same numbers for the same seed. */
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

/** The value below which that share of the numbers lies. */
export function quantile(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
