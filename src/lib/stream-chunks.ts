import calculateSlot from "cluster-key-slot";

/** Reading costs Redis 49 µs an event with one stream and 403 with 1,000. */
const MAX_STREAMS = 64;

/** Parts topics into chunks for one XREADGROUP each: at most 64 streams, in a Cluster of one slot. */
export function chunkTopics(topics: readonly string[], isCluster: boolean): readonly (readonly string[])[] {
  const chunks: string[][] = [];
  const open = new Map<number, string[]>();
  for (const topic of topics) {
    const slot = isCluster ? calculateSlot(topic) : 0;
    let chunk = open.get(slot);
    if (chunk === undefined || chunk.length >= MAX_STREAMS) {
      chunk = [];
      open.set(slot, chunk);
      chunks.push(chunk);
    }
    chunk.push(topic);
  }
  return chunks;
}
