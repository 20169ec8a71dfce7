import type { Commands } from "./commands.ts";

/** Interval at which the topic list is refreshed, in milliseconds. New topics are read at the latest after this time. */
const REFRESH_MS = 1_000;
/** How long a topic without a consumer group is skipped, in milliseconds. Meanwhile, the gateway creates the group. */
const SKIP_MS = 1_000;

export type TopicList = ReturnType<typeof createTopicList>;

/** Caches the topics of a subscription for one second. */
export function createTopicList(commands: Pick<Commands, "listTopics">, only: (topic: string) => boolean) {
  let topics: readonly string[] = [];
  let refreshedAtMs = Number.NEGATIVE_INFINITY;
  const skipped = new Map<string, number>();

  return {
    /** @throws Error of ioredis if the list must be refreshed and Redis is unavailable */
    async current(): Promise<readonly string[]> {
      const nowMs = performance.now();
      if (nowMs - refreshedAtMs > REFRESH_MS) {
        topics = (await commands.listTopics()).filter(only).sort();
        refreshedAtMs = nowMs;
      }
      for (const [topic, untilMs] of skipped) if (untilMs < nowMs) skipped.delete(topic);
      return skipped.size === 0 ? topics : topics.filter((topic) => !skipped.has(topic));
    },
    /** Skips topics whose consumer group is missing for `SKIP_MS`. */
    skip(missing: readonly string[]): void {
      for (const topic of missing) skipped.set(topic, performance.now() + SKIP_MS);
    },
  };
}
