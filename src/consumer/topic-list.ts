import type { Commands } from "./commands.ts";

/** How soon a new topic is read. */
const REFRESH_MS = 1_000;
/** How long a topic without its group is skipped: the gateway makes the group. */
const SKIP_MS = 1_000;

export type TopicList = ReturnType<typeof createTopicList>;

/** The topics that a subscription covers, as they come and go. */
export function createTopicList(commands: Pick<Commands, "listTopics">, only: (topic: string) => boolean) {
  let topics: readonly string[] = [];
  let refreshedAtMs = Number.NEGATIVE_INFINITY;
  const skipped = new Map<string, number>();

  return {
    /** Those to read now. @throws Error of ioredis while they are not known */
    async current(): Promise<readonly string[]> {
      const nowMs = performance.now();
      if (nowMs - refreshedAtMs > REFRESH_MS) {
        topics = (await commands.listTopics()).filter(only).sort();
        refreshedAtMs = nowMs;
      }
      for (const [topic, untilMs] of skipped) if (untilMs < nowMs) skipped.delete(topic);
      return skipped.size === 0 ? topics : topics.filter((topic) => !skipped.has(topic));
    },
    /** Leaves topics out for a moment whose group is missing. */
    skip(missing: readonly string[]): void {
      for (const topic of missing) skipped.set(topic, performance.now() + SKIP_MS);
    },
  };
}
