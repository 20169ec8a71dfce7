import type { RunEnding, SourcePositions } from "../../bus/sources/source-positions.ts";
import type { SourceStates } from "../../bus/sources/source-states.ts";
import type { FoundState } from "../../data/channels/channel-states.ts";
import type { ChannelHandle, GatherFetched, IngestFetched } from "../../event/ingest.ts";
import type { SourcePosition } from "../../event/received.ts";
import type { Clock } from "../../lib/clock.ts";
import type { CredentialsOf } from "../../net/credentials.ts";
import type { SourceEnd, StreamRun } from "../source.ts";
import type { SourcePace } from "./source-pace.ts";

/** A channel in force, as far as a run needs it. */
export interface SourceChannel extends ChannelHandle {
  readonly version: number;
  readonly connectionId: string | null;
}

export interface OpenRun {
  readonly run: StreamRun;
  /** How many runs have failed in a row before this one, on whatever worker. */
  readonly failures: number;
  /** Whether a delivery of this run has been written. */
  readonly hasWritten: () => boolean;
  /** Adds to the source's state; written soon, not at once. */
  readonly report: (facts: { readonly lagMs?: number }) => void;
  /**
   * Writes down how the run ended: its state, the count of failures, and with `notBeforeMs` or after a failure until when the
   * source is left alone. Undefined: the run was ended from here (pause,
   * hand-over); nothing is counted. What the run still writes is waited for first.
   *
   * @throws UnavailableError
   */
  readonly end: (end: SourceEnd | undefined, plan?: RunPlan) => Promise<void>;
}

export interface RunPlan {
  /** When the next run is meant to begin. */
  readonly nextAtMs?: number | undefined;
  /** Failures in a row, this run included; default: one more after `failed`, none after any other end. */
  readonly failures?: number;
  readonly progress?: RunEnding["progress"];
}

/** The dependencies of one run. */
export interface RunDeps<C extends SourceChannel = SourceChannel> {
  readonly credentialsOf: CredentialsOf;
  readonly positions: SourcePositions;
  readonly states: SourceStates;
  /** Keeps the deliveries of an organization's sources to its rate. */
  readonly pace: SourcePace;
  readonly ingest: IngestFetched<C>;
  readonly gather: GatherFetched<C>;
  readonly move: (
    channel: C,
    options: { readonly signal: AbortSignal; readonly position: SourcePosition },
  ) => Promise<void>;
  /** Sets a channel's state, unless it was written to since. True where it was another. */
  readonly setState: (
    channel: { readonly number: number; readonly version: number },
    state: FoundState,
  ) => Promise<boolean>;
  /** False where a write is seen before the cursor has moved with it (Cluster): then each waits for the one before. */
  readonly isPipelined: boolean;
  readonly clock: Clock;
  readonly observe: (event: SourceObservation) => void;
}

/** For counters and the log. */
export type SourceObservation =
  | { readonly kind: "ended"; readonly channel: ChannelHandle; readonly end: SourceEnd }
  | {
      readonly kind: "stopped";
      readonly channel: ChannelHandle;
      readonly state: FoundState;
      readonly end: SourceEnd;
    }
  | { readonly kind: "recovered" | "cursorLost"; readonly channel: ChannelHandle }
  /** The first answer of a run; `isAgain`: not of the first run that the source ever had. */
  | { readonly kind: "opened"; readonly channel: ChannelHandle; readonly isAgain: boolean }
  | { readonly kind: "refused"; readonly channel: ChannelHandle; readonly stale: "epoch" | "cursor" };
