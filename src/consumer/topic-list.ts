import type { Commands } from "./commands.ts";

/** Interval in ms between updates of the topic list. New topics are read after this time at the latest. */
const REFRESH_MS = 1_000;
/** Time in ms for which a topic without a consumer group is skipped. The gateway creates the group meanwhile. */
const SKIP_MS = 1_000;

export type TopicList = ReturnType<typeof createTopicList>;

/** Caches the topic list of a subscription for one second. */
export function createTopicList(commands: Pick<Commands, "listTopics">, only: (topic: string) => boolean) {
  let topics: readonly string[] = [];
  let refreshedAtMs = Number.NEGATIVE_INFINITY;
  const skipped = new Map<string, number>();

  return {
    /**
     * Returns the current topics.
     *
     * @throws Error of ioredis if the list must be refreshed and Redis is unavailable
     */
    async current(): Promise<readonly string[]> {
      const nowMs = performance.now();
      if (nowMs - refreshedAtMs > REFRESH_MS) {
        topics = (await commands.listTopics()).filter(only).sort();
        refreshedAtMs = nowMs;
      }
      for (const [topic, untilMs] of skipped) if (untilMs < nowMs) skipped.delete(topic);
      return skipped.size === 0 ? topics : topics.filter((topic) => !skipped.has(topic));
    },
    /** Skips these topics for `SKIP_MS`, because their consumer group is missing. */
    skip(missing: readonly string[]): void {
      for (const topic of missing) skipped.set(topic, performance.now() + SKIP_MS);
    },
  };
}
