import { setTimeout as delay } from "node:timers/promises";
import { shardOf } from "../../bus/sources/shard-leases.ts";
import type { Topics } from "../../bus/topics/topics.ts";
import type { Queryable } from "../../data/database.ts";
import { type ExpectedChannel, pageExpected } from "../../data/sources.ts";
import type { Clock } from "../../lib/clock.ts";
import { mapBounded } from "../../lib/map-bounded.ts";
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
  channel: Omit<ExpectedChannel, "number">,
): Promise<boolean> {
  const lastMs = (await topics.lastAppendedMs(channel.topics)) ?? 0;
  return clock() - Math.max(lastMs, channel.updatedAt.getTime()) > channel.expectEverySeconds * 1_000;
}

export function startSilenceWatch(deps: SilenceDeps): SilenceWatch {
  const { db, shards, log, everyMs = 30_000 } = deps;
  const stopping = new AbortController();
  const { signal } = stopping;
  let silent = new Set<number>();

  async function look(): Promise<void> {
    const found = new Set<number>();
    for (let after = 0; !signal.aborted; ) {
      const page = await pageExpected(db, { after, limit: PAGE });
      const ours = page.filter(({ number }) => shards().has(shardOf(number)));
      await mapBounded(ours, AT_ONCE, async (channel) => {
        if (await isSilent(deps, channel)) found.add(channel.number);
      });
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) break;
      after = last.number;
    }
    for (const channel of found) if (!silent.has(channel)) log.warn({ channel }, "a channel is silent");
    silent = found;
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      // Whatever keeps it from looking is told of by others.
      await look().catch((error: unknown) =>
        log.debug({ err: error }, "silent channels cannot be looked for"),
      );
      await delay(everyMs, undefined, { signal }).catch(() => {});
    }
  }

  const running = run();
  return {
    silent: () => silent.size,
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await running;
    },
  };
}
