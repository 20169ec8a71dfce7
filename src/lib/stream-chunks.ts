import calculateSlot from "cluster-key-slot";

/**
 * Maximum number of streams per XREADGROUP. With 1,000 streams, Redis takes 403 µs per event, compared with 49 µs for one stream.
 */
const MAX_STREAMS = 64;

/** Splits topics into groups that one XREADGROUP can read. In Redis Cluster, all topics of a group are in the same slot. */
export function chunkTopics(topics: readonly string[], isCluster: boolean): readonly (readonly string[])[] {
  const bySlot = new Map<number, string[]>();
  for (const topic of topics) {
    const slot = isCluster ? calculateSlot(topic) : 0;
    const known = bySlot.get(slot);
    if (known === undefined) bySlot.set(slot, [topic]);
    else known.push(topic);
  }
  return [...bySlot.values()].flatMap((slot) => {
    const chunks = Math.ceil(slot.length / MAX_STREAMS);
    return Array.from({ length: chunks }, (_, n) => slot.slice(n * MAX_STREAMS, (n + 1) * MAX_STREAMS));
  });
}
