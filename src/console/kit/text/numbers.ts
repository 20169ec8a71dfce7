const COUNT = new Intl.NumberFormat();
const SHORT = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const COUNT_OF_WHOLE = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const TWO_DIGITS = new Intl.NumberFormat(undefined, { maximumFractionDigits: 2 });
const ONE_DIGIT = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });

/** `12,345` */
export const formatCount = (count: number): string => COUNT.format(count);

/** `12.3K` */
export const formatShort = (count: number): string =>
  Math.abs(count) < 10_000 ? COUNT.format(count) : SHORT.format(count);

/** Formats a rate: `0.05`, `2.5`, `1,204`. Small rates keep two digits, so that they differ from 0. */
export const formatRate = (rate: number): string =>
  (rate < 1 ? TWO_DIGITS : rate < 100 ? ONE_DIGIT : COUNT_OF_WHOLE).format(rate);

/** `1.5 MiB` */
export function formatBytes(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${ONE_DIGIT.format(value)} ${units[unit]}`;
}

/** Formats a duration in its largest unit: `850 ms`, `12 s`, `3 min`, `5 h`, `2 d`. */
export function formatDuration(ms: number): string {
  const steps = [
    ["d", 86_400_000],
    ["h", 3_600_000],
    ["min", 60_000],
    ["s", 1_000],
  ] as const;
  for (const [unit, size] of steps) {
    if (Math.abs(ms) >= size) return `${ONE_DIGIT.format(ms / size)} ${unit}`;
  }
  return `${ONE_DIGIT.format(ms)} ms`;
}

/** `12.3 %` */
export const formatPercent = (fraction: number): string => `${ONE_DIGIT.format(fraction * 100)} %`;
