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

/** Finds channels that have received no event for longer than their `expectEverySeconds`. Works for all channel kinds. */
export interface SilenceWatch {
  /**
   * Logs each channel that has become silent since the last check, and returns all silent channels.
   * @throws UnavailableError
   */
  readonly check: (signal: AbortSignal) => Promise<readonly ExpectedChannel[]>;
  /** Returns how many silent channels the last check found. */
  readonly silent: () => number;
}

const PAGE = 500;
const AT_ONCE = 8;

/** Returns whether a channel's last event is older than its `expectEverySeconds`. Any change to the channel restarts that time. */
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
