const UNITS = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
] as const;

/** Formats a duration in its largest whole unit, rounded down, for example `25 minutes`. */
export function formatDuration(seconds: number): string {
  const [unit, size] = UNITS.find(([, each]) => seconds >= each) ?? UNITS[3];
  return new Intl.NumberFormat("en", { style: "unit", unit, unitDisplay: "long" }).format(
    Math.floor(seconds / size),
  );
}

/** Formats a count with its noun, for example `1 event` or `1,527 events`. */
export const formatCount = (count: number, one: string, many = `${one}s`): string =>
  `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
