import type { RunSpacing } from "../../bus/sources/source-positions.ts";
import { FairLimiter } from "../../limits/fairness.ts";
import { FencedRun } from "./fenced-run.ts";
import type { OpenRun, ReconciledChannel, RunDeps, RunOptions, SourceChannel } from "./open-run.ts";

/** A run is one stream connection or one poll. */
export interface SourceRuns {
  /**
   * Acquires the source for this worker and fences its previous owner, unless the source must not run yet.
   * @param options.skipBackoff whether to ignore the backoff of earlier failures, because a person changed the channel
   * @param options.spacing minimum time between runs; none by default
   * @param options.wakeSpacingMs minimum time since the last run for a run that a webhook requested, which replaces `spacing`
   * @throws UnavailableError when Redis or the database is unavailable
   * @throws StaleSourceError when another worker takes the source over at the same time
   */
  readonly openRun: (
    channelNumber: number,
    options: RunOptions & {
      readonly skipBackoff?: boolean;
      readonly spacing?: RunSpacing | undefined;
      readonly wakeSpacingMs?: number | undefined;
    },
  ) => Promise<OpeningRun>;
}

export type OpeningRun =
  | { readonly kind: "open"; readonly open: OpenRun }
  /**
   * The source must wait another `waitMs`. `backoff` means that it failed or the server requested the wait. `interval` means that the last
   * run was too recent.
   */
  | { readonly kind: "backoff" | "interval"; readonly waitMs: number }
  /** The source must not run, because its channel is deleted, inactive or has no subscription. */
  | { readonly kind: "none" };

export interface WantedSource<C extends SourceChannel = SourceChannel> {
  readonly channel: C;
  /** The channel whose missed events the source publishes. `undefined` if it publishes its own, or if that channel does not exist. */
  readonly reconciled?: ReconciledChannel<C> | undefined;
  /** Names of all topics that the channel has ever used, and those of the reconciled channel. */
  readonly topics: readonly string[];
  readonly hasRunBefore: boolean;
}

export interface SourceRunsDeps<C extends SourceChannel = SourceChannel> extends RunDeps<C> {
  /**
   * Returns the source of a channel, or `undefined` if the channel is inactive or has no subscription.
   * @throws UnavailableError
   */
  readonly findSource: (channelNumber: number) => Promise<WantedSource<C> | undefined>;
  /** @throws UnavailableError */
  readonly recordFirstRun: (channelNumber: number) => Promise<void>;
  /** Maximum size of all writes in flight, in bytes. Default: 16 MiB. A larger write waits until no other is in flight. */
  readonly maxBytesInFlight?: number;
}

export function createSourceRuns<C extends SourceChannel>(deps: SourceRunsDeps<C>): SourceRuns {
  const { findSource, recordFirstRun, positions, maxBytesInFlight = 16 * 1024 * 1024 } = deps;
  /** Sources whose first run is already recorded in the database. */
  const started = new Set<number>();
  const inFlight = new FairLimiter(maxBytesInFlight);
  return {
    async openRun(channelNumber, { skipBackoff = false, spacing, wakeSpacingMs, ...options }) {
      const source = await findSource(channelNumber);
      if (source === undefined) return { kind: "none" };
      options.signal.throwIfAborted();
      const { channel, reconciled, topics } = source;
      const hasRunBefore = started.has(channelNumber) || source.hasRunBefore;
      const waits = { skipBackoff, spacing, wakeSpacingMs };
      const acquired = await positions.takeOver({ number: channelNumber, topics }, waits);
      if (acquired.kind !== "acquired") return acquired;
      // Must happen after the source was acquired. Otherwise a source without a cursor would be reported as having lost its cursor.
      if (!hasRunBefore) await recordFirstRun(channelNumber);
      started.add(channelNumber);
      const open = new FencedRun(deps, inFlight, { ...options, channel, reconciled, acquired, hasRunBefore });
      return { kind: "open", open };
    },
  };
}
