import type { RunEnding, SourcePositions } from "../../bus/sources/source-positions.ts";
import type { SourceStates } from "../../bus/sources/source-states.ts";
import type { FoundState } from "../../data/channels/channel-states.ts";
import type { ChannelHandle, GatherFetched, IngestFetched } from "../../event/ingest.ts";
import type { SourcePosition } from "../../event/received.ts";
import type { Clock } from "../../lib/clock.ts";
import type { CredentialsOf } from "../../net/credentials.ts";
import type { SourceEnd, StreamRun } from "../source.ts";
import type { SourcePace } from "./source-pace.ts";

/** The part of an active channel that a run needs. */
export interface SourceChannel extends ChannelHandle {
  readonly version: number;
  readonly connectionId: string | null;
}

export interface OpenRun {
  readonly run: StreamRun;
  /** Number of consecutive failed runs before this one, on any worker. */
  readonly failures: number;
  /** Whether this run has published a delivery. */
  readonly hasWritten: () => boolean;
  /** Adds facts to the source's visible state. They are written shortly afterwards, in a batch. */
  readonly report: (facts: { readonly lagMs?: number }) => void;
  /**
   * Records how the run ended: its state, the failure count, and the earliest time of the next run. Waits for pending writes first.
   * @param end `undefined` when this worker ended the run (pause or hand-over). Then no failure is counted.
   * @throws UnavailableError
   */
  readonly end: (end: SourceEnd | undefined, plan?: RunPlan) => Promise<void>;
}

export interface RunPlan {
  /** When the next run should start, in ms since the Unix epoch. */
  readonly nextAtMs?: number | undefined;
  /** Number of consecutive failures including this run. Defaults to one more after `failed`, and to 0 after other ends. */
  readonly failures?: number;
  readonly progress?: RunEnding["progress"];
}

export interface RunDeps<C extends SourceChannel = SourceChannel> {
  readonly credentialsOf: CredentialsOf;
  readonly positions: SourcePositions;
  readonly states: SourceStates;
  /** Limits the rate of the organization's deliveries. */
  readonly pace: SourcePace;
  readonly ingest: IngestFetched<C>;
  readonly gather: GatherFetched<C>;
  readonly move: (
    channel: C,
    options: { readonly signal: AbortSignal; readonly position: SourcePosition },
  ) => Promise<void>;
  /** Sets a channel's state unless the channel was changed since. Returns whether the state changed. */
  readonly setState: (
    channel: { readonly number: number; readonly version: number },
    state: FoundState,
  ) => Promise<boolean>;
  /**
   * Whether writes may be sent without waiting for earlier ones. False on a Redis Cluster, where a write can be visible before its cursor.
   */
  readonly isPipelined: boolean;
  readonly clock: Clock;
  readonly observe: (event: SourceObservation) => void;
}

/** Reported to metrics and the log. */
export type SourceObservation =
  | { readonly kind: "ended"; readonly channel: ChannelHandle; readonly end: SourceEnd }
  | {
      readonly kind: "stopped";
      readonly channel: ChannelHandle;
      readonly state: FoundState;
      readonly end: SourceEnd;
    }
  | { readonly kind: "recovered" | "cursorLost"; readonly channel: ChannelHandle }
  /** The first response of a run. `isAgain` is false on the first run of the source. */
  | { readonly kind: "opened"; readonly channel: ChannelHandle; readonly isAgain: boolean }
  | { readonly kind: "refused"; readonly channel: ChannelHandle; readonly stale: "epoch" | "cursor" };
