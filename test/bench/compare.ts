/** Compares two implementations of the same task in one process. */

const ROUNDS = 5;
const ROUND_MS = 150;

/** Time per call in µs. */
function measure(run: () => unknown): number {
  const startedMs = performance.now();
  let calls = 0;
  for (; performance.now() - startedMs < ROUND_MS; calls += 16) for (let i = 0; i < 16; i++) run();
  return ((performance.now() - startedMs) * 1_000) / calls;
}

export interface Way {
  readonly label: string;
  readonly run: () => unknown;
}

/** Compares implementations in alternating rounds, and collects the ratios of the plain time to the optimized time. */
export function createComparison() {
  const ratios: Record<string, number> = {};
  return {
    ratios,
    /** Prints the medians of the rounds after a warm-up round. */
    compare(name: string, ours: Way, plain: Way): void {
      const rounds = Array.from(
        { length: ROUNDS + 1 },
        () => [measure(ours.run), measure(plain.run)] as const,
      );
      const median = (at: 0 | 1): number =>
        rounds
          .slice(1)
          .map((round) => round[at])
          .sort((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? Number.NaN;
      const ratio = median(1) / median(0);
      ratios[name] = Number(ratio.toPrecision(3));
      const figures = `${ours.label} ${median(0).toFixed(3)} µs, ${plain.label} ${median(1).toFixed(3)} µs`;
      console.log(`${name.padEnd(48)} ${figures}, ratio ${ratio.toPrecision(3)}`);
    },
  };
}
