/** Thresholds of a problem: it opens at `raised` and stays open while the value is at least `near`. */
export interface Bound {
  readonly raised: number;
  readonly near: number;
}

export const BOUNDS = {
  /** Number of consecutive failed runs of a source. */
  failures: { raised: 5, near: 1 },
  /** Undelivered entries of a subscription. */
  lag: { raised: 10_000, near: 5_000 },
  /** Age of a subscription's oldest undelivered entry, in seconds. */
  lagSeconds: { raised: 300, near: 60 },
  /** Number of a channel's items that were quarantined within one hour. */
  quarantinedAnHour: { raised: 100, near: 50 },
  /** Number of a channel's recorded events in which the same field differs from the schema. */
  driftedEvents: { raised: 3, near: 1 },
  /** Used fraction of a storage limit. */
  part: { raised: 0.8, near: 0.7 },
} as const satisfies Readonly<Record<string, Bound>>;

/** Returns which threshold the value has reached, or `undefined` if it is below both. */
export function levelOf(value: number, { raised, near }: Bound): "raised" | "near" | undefined {
  if (value >= raised) return "raised";
  return value >= near ? "near" : undefined;
}

export const formatPercent = (part: number): string => `${Math.floor(part * 100)} %`;
