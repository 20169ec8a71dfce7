import { slotOf } from "./keys.ts";
import type { RedisBus } from "./redis.ts";
import { parseEntry, type RawEntry, type TopicEntry } from "./topics.ts";

/** Reading costs Redis 49 µs an event with one stream and 403 with 1,000. */
const MAX_STREAMS = 64;

/** Parts topics into what one XREADGROUP may read: at most 64 streams, in a Cluster of one slot. */
export function chunkTopics(topics: readonly string[], isCluster: boolean): readonly (readonly string[])[] {
  const bySlot = new Map<number, string[][]>();
  for (const topic of topics) {
    const slot = isCluster ? slotOf(topic) : 0;
    const chunks = bySlot.get(slot) ?? [];
    bySlot.set(slot, chunks);
    const last = chunks.at(-1);
    if (last === undefined || last.length >= MAX_STREAMS) chunks.push([topic]);
    else last.push(topic);
  }
  return [...bySlot.values()].flat();
}

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
