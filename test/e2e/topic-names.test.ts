import { describe, expect, it } from "vitest";
import { givenChannel } from "../support/channels.ts";
import { fieldsOn } from "../support/gateway.ts";
import { givenGateway } from "../support/given-gateway.ts";
import { until } from "../support/until.ts";

const gateway = givenGateway();
const { stores } = gateway;

const TYPE = "order+created@v2";
const CYRILLIC = "заказ";
const definition = (type: string) => ({ type, typePath: "$.type", idPath: "$.id", payloadPath: "$.n" });
const given = (...types: string[]) => givenChannel(gateway, { uid: "in", events: types.map(definition) });
const bodyOf = (type: string, n: number) => ({ type, id: `${type}-${n}`, n });

describe("events whose type contains special characters", () => {
  it("are published to a topic named after their channel and type, and can be read from that topic", async () => {
    const { appPath, topicOf, send } = await given(TYPE, CYRILLIC);
    for (const type of [TYPE, CYRILLIC]) {
      const topic = topicOf(type);
      const { events } = await send(bodyOf(type, 1));
      expect(events).toEqual([expect.objectContaining({ type, topic, status: "published" })]);
      expect(await fieldsOn(stores, topic, "data")).toEqual(["1"]);
      const path = `${appPath}/events/${encodeURIComponent(topic)}/${events[0]?.entryId}`;
      expect(await gateway.api("GET", path)).toMatchObject({ type });
      const subscribed = await gateway.api("POST", `${appPath}/events/subscribe`, {
        eventUid: `in:${type}`,
      });
      expect(subscribed).toMatchObject({ topics: [topic] });
    }
  });

  it("continue to be published to the topic that an earlier version named differently, even after the channel changes", async () => {
    const { appId, appPath, path, topicOf, send } = await given(TYPE);
    const old = topicOf("order%2Bcreated%40v2");
    await stores.db.updateTable("topics").set({ topic: old }).where("appId", "=", appId).execute();

    // The next write makes the workers read the row again, as they do when they start.
    await gateway.api("PUT", path, {
      events: [definition(TYPE), definition(CYRILLIC)],
    });
    const posted = async (type: string, n: number) => (await send(bodyOf(type, n))).events[0]?.topic;
    await until(async () => (await posted(CYRILLIC, 1)) === topicOf(CYRILLIC));
    expect(await posted(TYPE, 1)).toBe(old);
    expect(await fieldsOn(stores, old, "data")).toEqual(["1"]);

    const subscription = await gateway.api<{ topics: string[]; id: string }>(
      ...(["POST", `${appPath}/events/subscribe`, { eventUid: `in:${TYPE}`, startAt: "earliest" }] as const),
    );
    expect(subscription.topics).toEqual([old]);
    await until(async () => (await stores.client.smembers(`inlet:sub:${subscription.id}`)).includes(old));
    const listed = await gateway.api<{ topic: string }[]>("GET", `${appPath}/topics`);
    expect(listed.map(({ topic }) => topic)).toEqual([old, topicOf(CYRILLIC)]);
    const explained = await gateway.api("POST", `${path}/explain`, {
      body: JSON.stringify({ type: TYPE, id: "x", n: 2 }),
      events: [definition(TYPE)],
    });
    expect(JSON.stringify(explained)).toContain(old);

    // A definition that is removed and added again finds its topic.
    await gateway.api("PUT", path, { events: [definition(CYRILLIC)] });
    await gateway.api("PUT", path, { events: [definition(TYPE)] });
    await until(async () => (await posted(TYPE, 2)) === old);
    expect(await stores.client.exists(topicOf(TYPE))).toBe(0);

    await gateway.api("DELETE", `${path}?purge=true`);
    await until(async () => (await stores.client.exists(old)) === 0);
  });
});
