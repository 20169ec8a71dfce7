import type { RedisCaller } from "../../src/bus/connection/general-connection.ts";
import { parseEntry, type RawEntry, type TopicEntry } from "../../src/bus/topics/topics.ts";

/** Returns all entries of a topic, oldest first. */
export async function listEntries(redis: RedisCaller, topic: string): Promise<readonly TopicEntry[]> {
  const reply = (await redis.call("xrange", [topic, "-", "+"])) as RawEntry[];
  return reply.map(parseEntry);
}
