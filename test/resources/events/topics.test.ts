import { expect, it } from "vitest";
import { givenChannel } from "../../support/channels.ts";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";

const spine = opened(startTestSpine);

const types = ["a", "b", "c"];
const install = () => givenChannel(spine, { events: types.map((type) => ({ type, typePath: "$.t" })) });

it("a topic is listed with the number of its entries and its readers, and an unused topic is listed as empty", async () => {
  const channel = await install();
  const subscription = await spine.api.call.post(`${channel.appPath}/events/subscribe`, {
    eventUid: "main:a",
    startAt: "earliest",
  });
  const entries = [];
  for (let i = 0; i < 3; i++) entries.push((await channel.send({ t: "a", i })).events[0]?.entryId ?? "");
  const { body, headers } = await spine.api.call("GET", `${channel.appPath}/topics`);
  expect(headers.get("x-total-count")).toBe("3");
  const entryOf = (entryId = "") => ({ entryId, time: new Date(Number.parseInt(entryId, 10)).toISOString() });
  expect(body[0]).toEqual({
    topic: channel.topicOf("a"),
    channelUid: "main",
    type: "a",
    length: 3,
    firstEntry: entryOf(entries[0]),
    lastEntry: entryOf(entries[2]),
    bytes: expect.any(Number),
    groups: [{ name: subscription.id, consumers: 0, pending: 0, lastDeliveredId: "0-0", lag: 3 }],
  });
  expect(body[0].bytes).toBeGreaterThan(300);
  expect(body[1]).toMatchObject({
    type: "b",
    length: 0,
    firstEntry: null,
    lastEntry: null,
    bytes: 0,
    groups: [],
  });
  expect(JSON.stringify(body)).not.toContain(channel.id);
});

it("topics are listed in pages, ordered by creation time and then by name", async () => {
  const channel = await install();
  await spine.api.call.post(`${channel.appPath}/channels`, {
    uid: "a",
    kind: "webhook",
    events: [{ type: "z" }],
  });
  const list = async (query: string) =>
    (await spine.api.call.get(`${channel.appPath}/topics${query}`)).map(({ type }: { type: string }) => type);
  expect(await list("")).toEqual(["a", "b", "c", "z"]);
  expect(await list("?limit=2&offset=1")).toEqual(["b", "c"]);
});

it("a topic is still listed after its channel was deleted", async () => {
  const channel = await install();
  await channel.send({ t: "a" });
  await spine.api.call.delete(channel.path);
  const [topic] = await spine.api.call.get(`${channel.appPath}/topics`);
  expect(topic).toMatchObject({ type: "a", length: 1 });
});
