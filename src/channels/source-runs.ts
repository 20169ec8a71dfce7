import type { SourceEnd, SourceRun } from "./source.ts";

/** What it takes to begin a run: one connection of a stream, one poll. */
export interface SourceRuns {
  /**
   * Takes the source over: whoever ran it before is fenced from now on. Nothing is taken while the source is to be left alone.
   *
   * @param options.owner the worker's name, as the source's state shows it
   * @throws UnavailableError when that cannot be known or done now.
   */
  readonly openRun: (
    channelNumber: number,
    options: { readonly signal: AbortSignal; readonly owner: string },
  ) => Promise<OpeningRun>;
}

export type OpeningRun =
  | { readonly kind: "open"; readonly open: OpenRun }
  /** Not before so many ms from now: its sender said so, or it failed. */
  | { readonly kind: "early"; readonly waitMs: number }
  /** It should not run: it is deleted, not active, or of a kind that fetches nothing. */
  | { readonly kind: "none" };

export interface OpenRun {
  readonly run: SourceRun;
  /** How many runs have failed in a row before this one, on whatever worker. */
  readonly failures: number;
  /** What the source's state shows; written soon, not at once. */
  readonly report: (facts: { readonly lagMs?: number }) => void;
  /**
   * Writes down how the run ended: its state, the count of failures, and with `notBeforeMs` or after a failure until when the
   * source is left alone. What only a person can mend stops the channel. Undefined: the run was ended from here (pause,
   * hand-over); nothing is counted.
   *
   * @param plan.nextAtMs when the next run is meant to begin
   * @throws UnavailableError
   */
  readonly end: (end: SourceEnd | undefined, plan?: { readonly nextAtMs?: number }) => Promise<void>;
}
