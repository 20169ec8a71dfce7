import { expect, it } from "vitest";
import { idPreceding } from "../../src/bus/entry-id.ts";
import { createTopicReader, type TopicPosition } from "../../src/bus/topics/read-after.ts";
import { createGapWatch } from "../../src/handlers/gap-watch.ts";
import { openedBus } from "../bus/support.ts";

const { server, redis } = openedBus();

/** Watches a topic with the entries 1-0 to 9-0. */
async function given(topic: string) {
  for (let n = 1; n <= 9; n++) await server.client.xadd(topic, `${n}-0`, "id", String(n));
  const gaps: TopicPosition[] = [];
  const note = createGapWatch(createTopicReader({ redis }), (position) => void gaps.push(position));
  return { gaps, note: (n: number) => note(topic, `${n}-0`) };
}

it("reports entries that were trimmed after the last handled one", async () => {
  const { gaps, note } = await given("trimmed");
  await note(1);
  await server.client.xtrim("trimmed", "MINID", "5-0");
  await note(5);
  await note(5);
  await note(6);
  expect(gaps).toEqual([{ after: idPreceding("5-0"), appended: 4 }]);
});

it("reports no entries that were handled before they were trimmed", async () => {
  const { gaps, note } = await given("handled");
  for (let n = 1; n <= 3; n++) await note(n);
  await server.client.xtrim("handled", "MINID", "4-0");
  for (let n = 4; n <= 6; n++) await note(n);
  await server.client.xtrim("handled", "MINID", "6-0");
  await note(7);
  expect(gaps).toEqual([]);
});

it("reports an entry that was deleted before it was handled, but not one that was deleted afterwards", async () => {
  const { gaps, note } = await given("deleted");
  for (let n = 1; n <= 3; n++) await note(n);
  await server.client.xdel("deleted", "2-0");
  await note(4);
  await server.client.xdel("deleted", "6-0");
  await note(5);
  await note(7);
  await note(8);
  expect(gaps).toEqual([{ after: idPreceding("7-0"), appended: undefined }]);
});

it.each([
  ["5-3", "5-2"],
  ["5-0", "4-18446744073709551615"],
  ["0-1", "0-0"],
])("finds the id that precedes %s", (id, preceding) => {
  expect(idPreceding(id)).toBe(preceding);
});
