import { expect, test } from "vitest";
import { createEntryIndex } from "../../../src/bus/topics/entry-index.ts";
import { mergeEntries, mergeNewest } from "../../../src/bus/topics/entry-merge.ts";
import { openTestRedis } from "../../bus/support.ts";
import { opened } from "../../support/opened.ts";
import { startRedisCluster } from "../../support/redis.ts";

const ALL = { from: "-", to: "+" };
const cluster = opened(startRedisCluster);
const redis = opened(() => openTestRedis(cluster.url));
const entries = opened(() => createEntryIndex({ redis }));

test("the entries of topics in several slots are listed and read in one order", async () => {
  const topics = Array.from({ length: 20 }, (_, n) => `merged.${String(n).padStart(2, "0")}`);
  const added: string[] = [];
  for (let ms = 1; ms <= 200; ms++) {
    const topic = topics[(ms * 7) % topics.length] ?? "";
    await redis.call("xadd", [topic, `${ms}-0`, "id", `e${ms}`]);
    added.push(`e${ms}`);
  }
  const oldest = await Array.fromAsync(entries.read(mergeEntries(entries, topics, ALL)));
  expect(oldest.map(({ entry }) => entry?.fields.id)).toEqual(added);
  const newest = await Array.fromAsync(entries.read(mergeNewest(entries, topics, ALL)));
  expect(newest.map(({ entry }) => entry?.fields.id)).toEqual(added.toReversed());
});
