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

/** Finds the channels, of whatever kind, from which no event came for longer than they say. */
export interface SilenceWatch {
  /** Logs each that is new among them. @throws UnavailableError */
  readonly check: (signal: AbortSignal) => Promise<readonly ExpectedChannel[]>;
  /** How many the last look has found. */
  readonly silent: () => number;
}

const PAGE = 500;
const AT_ONCE = 8;

/** Whether no event of a channel came for longer than it says; a channel that was just written has all its time. */
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
