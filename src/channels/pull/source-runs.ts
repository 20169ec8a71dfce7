import type { RunSpacing } from "../../bus/sources/source-positions.ts";
import { createLimiter } from "../../lib/limiter.ts";
import { FencedRun } from "./fenced-run.ts";
import type { OpenRun, RunDeps, SourceChannel } from "./open-run.ts";

/** Begins runs: one connection of a stream, or one poll. */
export interface SourceRuns {
  /**
   * Takes the source over: its last owner is fenced from now on. Nothing is taken while the source is to be left alone.
   *
   * @param options.owner the worker's name, as the source's state shows it
   * @param options.skipBackoff do not wait for what failed before: a person has changed something
   * @param options.spacing how far runs are to be apart; absent: as near as they come
   * @param options.onOpened told when its stream is open, or its poll's answer there
   * @throws UnavailableError when that cannot be known or done now.
   * @throws StaleSourceError when another worker takes it over at the same moment.
   */
  readonly openRun: (
    channelNumber: number,
    options: {
      readonly signal: AbortSignal;
      readonly owner: string;
      readonly skipBackoff?: boolean;
      readonly spacing?: RunSpacing | undefined;
      readonly onOpened?: () => void;
    },
  ) => Promise<OpeningRun>;
}

export type OpeningRun =
  | { readonly kind: "open"; readonly open: OpenRun }
  /** Not before so many ms from now: its sender said so, or it failed; or the interval since the last run began is not over. */
  | { readonly kind: "backoff" | "interval"; readonly waitMs: number }
  /** It should not run: it is deleted, not active, or nobody asks for it. */
  | { readonly kind: "none" };

/** A source that should run. */
export interface WantedSource<C extends SourceChannel = SourceChannel> {
  /** In force. */
  readonly channel: C;
  /** All that were ever written for it. */
  readonly topics: readonly string[];
  /** True where it is noted that it has begun to run. */
  readonly hasBegun: boolean;
}

export interface SourceRunsDeps<C extends SourceChannel = SourceChannel> extends RunDeps<C> {
  /** Undefined where it is not active, or nobody asks for it. @throws UnavailableError */
  readonly findSource: (channelNumber: number) => Promise<WantedSource<C> | undefined>;
  /** Notes that a source has begun to run. @throws UnavailableError */
  readonly noteBegun: (channelNumber: number) => Promise<void>;
}

/** Of all sources together, on their way to the bus: less than what it takes, so that sources wait instead of being refused. */
const MAX_BYTES_IN_FLIGHT = 16 * 1024 * 1024;

export function createSourceRuns<C extends SourceChannel>(deps: SourceRunsDeps<C>): SourceRuns {
  const { findSource, noteBegun, positions } = deps;
  /** Sources of which it is noted that they have begun. */
  const started = new Set<number>();
  const inFlight = createLimiter(MAX_BYTES_IN_FLIGHT);
  return {
    async openRun(channelNumber, { signal, owner, skipBackoff = false, spacing, onOpened }) {
      const source = await findSource(channelNumber);
      if (source === undefined) return { kind: "none" };
      signal.throwIfAborted();
      const { channel, topics } = source;
      const hasRunBefore = started.has(channelNumber) || source.hasBegun;
      const acquired = await positions.takeOver({ number: channelNumber, topics }, { skipBackoff, spacing });
      if (acquired.kind !== "acquired") return acquired;
      // Not before: Redis has lost nothing of a source that it could not take over.
      if (!hasRunBefore) await noteBegun(channelNumber);
      started.add(channelNumber);
      return {
        kind: "open",
        open: new FencedRun(deps, inFlight, { channel, acquired, hasRunBefore, owner, signal, onOpened }),
      };
    },
  };
}
