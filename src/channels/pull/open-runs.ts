import { createLimiter } from "../../lib/limiter.ts";
import { startRun } from "./run.ts";
import type { SourceChannel, SourceRuns, SourceRunsDeps } from "./source-runs.ts";

/** Of all sources together, on their way to the bus: less than what it takes, so that sources wait instead of being refused. */
const MAX_BYTES_UNDER_WAY = 16 * 1024 * 1024;

export function createSourceRuns<C extends SourceChannel>(deps: SourceRunsDeps<C>): SourceRuns {
  const { findSource, listTopics, positions } = deps;
  const underWay = createLimiter(MAX_BYTES_UNDER_WAY);
  return {
    async openRun(channelNumber, { signal, owner, skipBackoff = false }) {
      const channel = await findSource(channelNumber);
      if (channel === undefined) return { kind: "none" };
      const topics = await listTopics(channelNumber);
      signal.throwIfAborted();
      const taken = await positions.takeOver({ number: channelNumber, topics }, { skipBackoff });
      if (taken.kind === "backoff") return taken;
      return { kind: "open", open: startRun({ ...deps, underWay }, { channel, taken, owner, signal }) };
    },
  };
}
