/** Thresholds with hysteresis: a problem opens at `raised`, and stays open down to `near`. */
export interface Bound {
  readonly raised: number;
  readonly near: number;
}

export const BOUNDS = {
  /** Consecutive failed runs of a source. */
  failures: { raised: 5, near: 1 },
  /** Undelivered entries of a subscription. */
  lag: { raised: 10_000, near: 5_000 },
  /** Age of the oldest undelivered entry. */
  lagSeconds: { raised: 300, near: 60 },
  /** Items of a channel quarantined within an hour. */
  quarantinedAnHour: { raised: 100, near: 50 },
  /** Used fraction of a limit in bytes. */
  part: { raised: 0.8, near: 0.7 },
} as const satisfies Readonly<Record<string, Bound>>;

/** Returns the level of a value, or `undefined` if it is below both thresholds. */
export function levelOf(value: number, { raised, near }: Bound): "raised" | "near" | undefined {
  if (value >= raised) return "raised";
  return value >= near ? "near" : undefined;
}
