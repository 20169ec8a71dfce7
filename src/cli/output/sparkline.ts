const BARS = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"] as const;

/** Draws values as bars of one line. The highest value has a full bar, and 0 the lowest. */
export function renderSparkline(values: readonly number[]): string {
  const max = Math.max(0, ...values);
  return values
    .map((value) => (max === 0 ? BARS[0] : BARS[Math.ceil((value / max) * (BARS.length - 1))]))
    .join("");
}

/** Adds up neighboring values, so that at most `parts` remain. */
export function compress(values: readonly number[], parts: number): readonly number[] {
  const size = Math.ceil(values.length / parts);
  return Array.from({ length: Math.ceil(values.length / size) }, (_, part) =>
    values.slice(part * size, (part + 1) * size).reduce((sum, value) => sum + value, 0),
  );
}
