import type { RunEnding, SourcePositions } from "../../bus/sources/source-positions.ts";
import type { SourceStates } from "../../bus/sources/source-states.ts";
import type { FoundState } from "../../data/channels/channel-states.ts";
import type { ChannelHandle, GatherFetched } from "../../event/ingest.ts";
import type { SourcePosition, VerifiedDelivery } from "../../event/received.ts";
import type { Clock } from "../../lib/clock.ts";
import type { CredentialsOf } from "../../net/credentials.ts";
import type { ReconcileFindings, ReconcileRun, SourceEnd, StreamRun } from "../source.ts";
import type { SourcePace } from "./source-pace.ts";

export interface SourceChannel extends ChannelHandle {
  readonly version: number;
  readonly connectionId: string | null;
}

/** A webhook channel whose missed events a source publishes. */
export interface ReconciledChannel<C extends SourceChannel = SourceChannel>
  extends Pick<ReconcileRun, "idRules" | "isForgotten" | "isPaused"> {
  readonly channel: C;
  /** Compares deliveries with the events that the channel knows. */
  readonly compare: (
    deliveries: readonly VerifiedDelivery[],
    options: Parameters<ReconcileRun["compare"]>[1],
  ) => ReturnType<ReconcileRun["compare"]>;
}

export interface RunOptions {
  readonly signal: AbortSignal;
  /** Name of the worker, shown in the source's state. */
  readonly owner: string;
  /** Called when the stream is open or the poll has its response. */
  readonly onOpened?: () => void;
  /** How far the source is behind, in ms. By default, the run measures how long each delivery waits for its publication. */
  readonly lagMs?: number;
}

export interface OpenRun extends StreamRun {
  /** Consecutive failed runs of this source before this one, on any worker. */
  readonly failures: number;
  readonly hasWritten: () => boolean;
  /**
   * Waits for pending writes, then stores how the run ended: the source's state, the failure count, and the earliest time of the next run.
   * @param end `undefined` when this worker ended the run because of a pause or hand-over. Such an end does not count as a failure.
   * @throws UnavailableError
   */
  readonly end: (end: SourceEnd | undefined, plan?: RunPlan) => Promise<void>;
}

export interface RunPlan {
  readonly nextAtMs?: number | undefined;
  /** Number of consecutive failures, including this run. By default, a failed run adds 1 and any other run resets the number to 0. */
  readonly failures?: number;
  readonly progress?: RunEnding["progress"];
}

export interface RunDeps<C extends SourceChannel = SourceChannel> {
  readonly credentialsOf: CredentialsOf;
  readonly positions: SourcePositions;
  readonly states: SourceStates;
  readonly pace: SourcePace;
  readonly gather: GatherFetched<C>;
  readonly move: (
    channel: C,
    options: { readonly signal: AbortSignal; readonly position: SourcePosition },
  ) => Promise<void>;
  /** Sets the state of a channel and returns true. Does nothing and returns false if the channel was changed in the meantime. */
  readonly setState: (
    channel: { readonly number: number; readonly version: number },
    state: FoundState,
  ) => Promise<boolean>;
  /**
   * Whether a write may be sent before the previous write completes. False on Redis Cluster, where writes may become visible out of order.
   */
  readonly isPipelined: boolean;
  readonly clock: Clock;
  readonly observe: (event: SourceObservation) => void;
}

export type SourceObservation =
  /** Reported when a poll has found events that the channel `target` missed. */
  | ({ readonly kind: "missed"; readonly channel: ChannelHandle; readonly target: ChannelHandle } & Omit<
      ReconcileFindings,
      "missed"
    >)
  | { readonly kind: "ended"; readonly channel: ChannelHandle; readonly end: SourceEnd }
  | {
      readonly kind: "stopped";
      readonly channel: ChannelHandle;
      readonly state: FoundState;
      readonly end: SourceEnd;
    }
  | { readonly kind: "recovered" | "cursorLost"; readonly channel: ChannelHandle }
  /** Reported when a connection or poll gets its first response. `isAgain` is false on the first run of a source. */
  | { readonly kind: "opened"; readonly channel: ChannelHandle; readonly isAgain: boolean }
  | { readonly kind: "refused"; readonly channel: ChannelHandle; readonly stale: "epoch" | "cursor" };
