import type { AcquiredSource, SourcePositions } from "../../bus/sources/source-positions.ts";
import type { SourceStates } from "../../bus/sources/source-states.ts";
import type { StoppedState } from "../../data/channel-states.ts";
import type { ChannelHandle, IngestFetched } from "../../event/ingest.ts";
import type { SourcePosition } from "../../event/received.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Limiter } from "../../lib/limiter.ts";
import type { CredentialsOf } from "../../net/credentials.ts";
import type { SourceEnd, SourceRun } from "../source.ts";

/** What it takes to begin a run: one connection of a stream, one poll. */
export interface SourceRuns {
  /**
   * Takes the source over: whoever ran it before is fenced from now on. Nothing is taken while the source is to be left alone.
   *
   * @param options.owner the worker's name, as the source's state shows it
   * @param options.skipBackoff do not wait for what failed before: a person has changed something
   * @throws UnavailableError when that cannot be known or done now.
   * @throws StaleSourceError when another worker takes it over at the same moment.
   */
  readonly openRun: (
    channelNumber: number,
    options: { readonly signal: AbortSignal; readonly owner: string; readonly skipBackoff?: boolean },
  ) => Promise<OpeningRun>;
}

export type OpeningRun =
  | { readonly kind: "open"; readonly open: OpenRun }
  /** Not before so many ms from now: its sender said so, or it failed. */
  | { readonly kind: "backoff"; readonly waitMs: number }
  /** It should not run: it is deleted, not active, or nobody asks for it. */
  | { readonly kind: "none" };

export interface OpenRun {
  readonly run: SourceRun;
  /** How many runs have failed in a row before this one, on whatever worker. */
  readonly failures: number;
  /** Whether a delivery of this run has been written. */
  readonly hasWritten: () => boolean;
  /** What the source's state shows; written soon, not at once. */
  readonly report: (facts: { readonly lagMs?: number }) => void;
  /**
   * Writes down how the run ended: its state, the count of failures, and with `notBeforeMs` or after a failure until when the
   * source is left alone. What only a person can mend stops the channel. Undefined: the run was ended from here (pause,
   * hand-over); nothing is counted. What the run still writes is waited for first.
   *
   * @throws UnavailableError
   */
  readonly end: (end: SourceEnd | undefined, plan?: RunPlan) => Promise<void>;
}

export interface RunPlan {
  /** When the next run is meant to begin. */
  readonly nextAtMs?: number;
  /** Failures in a row, this run included; default: one more after `failed`, none after any other end. */
  readonly failures?: number;
}

/** A channel in force, as far as a run needs it. */
export interface SourceChannel extends ChannelHandle {
  readonly version: number;
  readonly connectionId: string | null;
}

export interface SourceRunsDeps<C extends SourceChannel = SourceChannel> {
  /** The channel in force; undefined where it is not active, or nobody asks for it. @throws UnavailableError */
  readonly findSource: (channelNumber: number) => Promise<C | undefined>;
  /** All topics that were ever written for it. */
  readonly listTopics: (channelNumber: number) => Promise<readonly string[]>;
  readonly credentialsOf: CredentialsOf;
  readonly positions: SourcePositions;
  readonly states: SourceStates;
  readonly ingest: IngestFetched<C>;
  readonly move: (
    channel: C,
    options: { readonly signal: AbortSignal; readonly position: SourcePosition },
  ) => Promise<void>;
  /** Stops a channel, unless it was written to since. */
  readonly stopChannel: (
    channel: { readonly number: number; readonly version: number },
    state: StoppedState,
  ) => Promise<void>;
  /** False where a write is seen before the cursor has moved with it (Cluster): then each waits for the one before. */
  readonly isPipelined: boolean;
  readonly clock: Clock;
  readonly observe: (event: SourceObservation) => void;
}

/** What runs do, for counters. */
export type SourceObservation =
  | { readonly kind: "ended"; readonly channel: ChannelHandle; readonly end: SourceEnd["kind"] }
  | { readonly kind: "refused"; readonly channel: ChannelHandle; readonly stale: "epoch" | "cursor" };

/** What a run needs besides. */
export type RunDeps<C extends SourceChannel> = SourceRunsDeps<C> & { readonly underWay: Limiter };

/** What a run begins with. */
export interface BeginningRun<C> {
  readonly channel: C;
  readonly taken: AcquiredSource;
  readonly owner: string;
  readonly signal: AbortSignal;
}
