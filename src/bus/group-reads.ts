import type { RedisBus } from "./redis.ts";
import { parseEntry, type RawEntry, type TopicEntry } from "./topics.ts";

export interface GroupRead {
  /** One chunk of `chunkTopics`. */
  readonly topics: readonly string[];
  readonly group: string;
  readonly consumer: string;
  /** At most so many entries of each topic. */
  readonly count: number;
}

/** Takes what a group has not been given yet, by topic; at once, without waiting for more. */
export async function readGroup(
  redis: RedisBus,
  { topics, group, consumer, count }: GroupRead,
): Promise<ReadonlyMap<string, readonly TopicEntry[]>> {
  const fresh = topics.map(() => ">");
  const args = ["group", group, consumer, "count", count, "streams", ...topics, ...fresh];
  const reply = (await redis.call("xreadgroup", args)) as [topic: string, entries: RawEntry[]][] | null;
  return new Map((reply ?? []).map(([topic, entries]) => [topic, entries.map(parseEntry)]));
}
