/** From where on something is a problem (`raised`), and down to where an open one stays (`near`): between the two nothing changes. */
export interface Bound {
  readonly raised: number;
  readonly near: number;
}

export const BOUNDS = {
  /** Runs of a source that fail in a row. */
  failures: { raised: 5, near: 1 },
  /** Undelivered entries of a subscription. */
  lag: { raised: 10_000, near: 5_000 },
  /** The age of the oldest of them. */
  lagSeconds: { raised: 300, near: 60 },
  /** Failed items of a channel that quarantine took within an hour. */
  quarantinedAnHour: { raised: 100, near: 50 },
  /** Of a limit in bytes. */
  part: { raised: 0.8, near: 0.7 },
} as const satisfies Readonly<Record<string, Bound>>;

/** Undefined: below both. */
export function levelOf(value: number, { raised, near }: Bound): "raised" | "near" | undefined {
  if (value >= raised) return "raised";
  return value >= near ? "near" : undefined;
}
