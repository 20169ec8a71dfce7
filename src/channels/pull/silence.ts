import { shardOf } from "../../bus/sources/shard-leases.ts";
import type { Topics } from "../../bus/topics/topics.ts";
import { type ExpectedChannel, pageExpected } from "../../data/channels/sources.ts";
import type { Queryable } from "../../data/database.ts";
import { channelFacts } from "../../event/channel.ts";
import type { Clock } from "../../lib/clock.ts";
import { startLoop } from "../../lib/loop.ts";
import { mapBounded } from "../../lib/map-bounded.ts";
import { inPages } from "../../lib/pages.ts";
import type { Log } from "../../log.ts";

export interface SilenceDeps {
  readonly db: Queryable;
  readonly topics: Pick<Topics, "lastAppendedMs">;
  readonly clock: Clock;
  /** The shards of this worker: each looks after the channels in its own, of whatever kind they are. */
  readonly shards: () => ReadonlySet<number>;
  readonly log: Log;
  readonly everyMs?: number;
}

/** Counts the channels from which no event came for longer than they say. */
export interface SilenceWatch extends AsyncDisposable {
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

export function startSilenceWatch(deps: SilenceDeps): SilenceWatch {
  const { db, shards, log, everyMs = 30_000 } = deps;
  let silent: ReadonlySet<number> = new Set();

  async function look(signal: AbortSignal): Promise<void> {
    const found = new Map<number, ExpectedChannel>();
    const pages = inPages("number", 0, PAGE, (after, limit) => pageExpected(db, { after, limit }));
    for await (const page of pages) {
      if (signal.aborted) break;
      const ours = page.filter(({ number }) => shards().has(shardOf(number)));
      await mapBounded(ours, AT_ONCE, async (channel) => {
        if (await isSilent(deps, channel)) found.set(channel.number, channel);
      });
    }
    for (const [number, channel] of found) {
      if (silent.has(number)) continue;
      const facts = { event: "channel.silent", ...channelFacts(channel) };
      log.warn(facts, "no event for longer than the channel expects");
    }
    silent = new Set(found.keys());
  }

  const loop = startLoop({
    step: look,
    everyMs,
    onFailing: (err) => log.debug({ event: "silence.failing", err }, "silent channels cannot be counted"),
  });
  return { silent: () => silent.size, [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose]() };
}
