import { useAddress } from "../../kit/list/address.ts";

/** Time range of the charts and counts of the overview. */
export interface Range {
  /** Name in the address. */
  readonly name: string;
  readonly label: string;
  readonly title: string;
  readonly ms: number;
  readonly stepSeconds: number;
}

const HOUR: Range = { name: "1h", label: "1 h", title: "Last hour", ms: 3_600_000, stepSeconds: 60 };

export const RANGES: readonly Range[] = [
  HOUR,
  { name: "24h", label: "24 h", title: "Last 24 hours", ms: 86_400_000, stepSeconds: 900 },
  { name: "7d", label: "7 d", title: "Last 7 days", ms: 7 * 86_400_000, stepSeconds: 3_600 },
];

/** Returns the range in the URL. Default: the last hour. */
export function useRange(): Range {
  const { query } = useAddress();
  return RANGES.find(({ name }) => name === query.range) ?? HOUR;
}

/** Returns the start of the range. It is a whole interval, so that all metrics have the same intervals. */
export function startOf({ ms, stepSeconds }: Range): number {
  const stepMs = stepSeconds * 1_000;
  return Math.floor((Date.now() - ms) / stepMs + 1) * stepMs;
}
