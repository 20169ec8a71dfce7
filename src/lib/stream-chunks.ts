import calculateSlot from "cluster-key-slot";

/** Reading costs Redis 49 µs an event with one stream and 403 with 1,000. */
const MAX_STREAMS = 64;

/** Parts topics into chunks for one XREADGROUP each: at most 64 streams, in a Cluster of one slot. */
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
