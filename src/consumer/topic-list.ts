import type { Commands } from "./commands.ts";

/** How soon a new topic is read. */
const LOOK_EVERY_MS = 1_000;
/** How long a topic is left alone whose group is not there: the gateway makes it. */
const MISSING_MS = 1_000;

/** The topics that a subscription covers, as they come and go. */
export interface TopicList {
  /** Those to read now. @throws what ioredis says, where they are not known yet */
  readonly current: () => Promise<readonly string[]>;
  readonly noteMissing: (topics: readonly string[]) => void;
}

export function createTopicList(
  commands: Pick<Commands, "listTopics">,
  only: (topic: string) => boolean,
): TopicList {
  let topics: readonly string[] = [];
  let lookedAtMs = Number.NEGATIVE_INFINITY;
  const missing = new Map<string, number>();

  return {
    async current() {
      const nowMs = performance.now();
      if (nowMs - lookedAtMs > LOOK_EVERY_MS) {
        topics = (await commands.listTopics()).filter(only).sort();
        lookedAtMs = nowMs;
      }
      for (const [topic, untilMs] of missing) if (untilMs < nowMs) missing.delete(topic);
      return missing.size === 0 ? topics : topics.filter((topic) => !missing.has(topic));
    },
    noteMissing(gone) {
      for (const topic of gone) missing.set(topic, performance.now() + MISSING_MS);
    },
  };
}
