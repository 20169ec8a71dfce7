import type { Topics } from "../../bus/topics/topics.ts";
import { type ExpectedChannel, pageExpected } from "../../data/channels/sources.ts";
import type { Queryable } from "../../data/database.ts";
import { channelFacts } from "../../event/channel.ts";
import type { Clock } from "../../lib/clock.ts";
import { mapBounded } from "../../lib/map-bounded.ts";
import { inPages } from "../../lib/pages.ts";
import type { Log } from "../../log.ts";

export interface SilenceDeps {
  readonly db: Queryable;
  readonly topics: Pick<Topics, "lastAppendedMs">;
  readonly clock: Clock;
  readonly log: Log;
}

/** Finds channels that have received no event for longer than their setting `expectEverySeconds`. */
export interface SilenceWatch {
  /**
   * Returns all silent channels. Logs the ones that have become silent since the last check.
   * @throws UnavailableError
   */
  readonly check: (signal: AbortSignal) => Promise<readonly ExpectedChannel[]>;
  /** Returns the number of silent channels at the last check. */
  readonly silent: () => number;
}

const PAGE = 500;
const AT_ONCE = 8;

/** Returns whether a channel has received no event for longer than `expectEverySeconds`. A change to the channel restarts that time. */
export async function isSilent(
  { topics, clock }: Pick<SilenceDeps, "topics" | "clock">,
  channel: Pick<ExpectedChannel, "topics" | "updatedAt" | "expectEverySeconds">,
): Promise<boolean> {
  const lastMs = (await topics.lastAppendedMs(channel.topics)) ?? 0;
  return clock() - Math.max(lastMs, channel.updatedAt.getTime()) > channel.expectEverySeconds * 1_000;
}

export function createSilenceWatch(deps: SilenceDeps): SilenceWatch {
  const { db, log } = deps;
  let silent: ReadonlySet<number> = new Set();
  return {
    silent: () => silent.size,
    async check(signal) {
      const found = new Map<number, ExpectedChannel>();
      const pages = inPages("number", 0, PAGE, (after, limit) => pageExpected(db, { after, limit }));
      for await (const page of pages) {
        signal.throwIfAborted();
        await mapBounded(page, AT_ONCE, async (channel) => {
          if (await isSilent(deps, channel)) found.set(channel.number, channel);
        });
      }
      for (const [number, channel] of found) {
        if (silent.has(number)) continue;
        const facts = { event: "channel.silent", ...channelFacts(channel) };
        log.warn(facts, "no event for longer than the channel expects");
      }
      silent = new Set(found.keys());
      return [...found.values()];
    },
  };
}
