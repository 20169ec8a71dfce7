import { describe, expect, it } from "vitest";
import { createTestStores, fieldsOn, installApp, startTestGateway } from "../support/gateway.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";

const stores = opened(createTestStores);
const gateway = opened(() => startTestGateway(stores.env));

const TYPE = "order+created@v2";
const CYRILLIC = "заказ";
const definition = (type: string) => ({ type, typePath: "$.type", idPath: "$.id", payloadPath: "$.n" });
const channel = (...types: string[]) => ({ uid: "in", kind: "webhook", events: types.map(definition) });
// biome-ignore lint/suspicious/noExplicitAny: an answer of a hook
async function post(url: string | null, type: string, n: number): Promise<any> {
  const body = JSON.stringify({ type, id: `${type}-${n}`, n });
  const response = await fetch(url ?? "", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
  });
  return response.json();
}

describe("events whose type contains special characters", () => {
  it("are published to a topic named after their channel and type, and can be read from that topic", async () => {
    const app = await installApp(gateway, [channel(TYPE, CYRILLIC)]);
    for (const type of [TYPE, CYRILLIC]) {
      const topic = app.topicOf("in", type);
      const { events } = await post(app.channels[0]?.url ?? null, type, 1);
      expect(events).toEqual([expect.objectContaining({ type, topic, status: "published" })]);
      expect(await fieldsOn(stores, topic, "data")).toEqual(["1"]);
      const path = `/apps/${app.id}/events/${encodeURIComponent(topic)}/${events[0].entryId}`;
      expect(await gateway.api("GET", path)).toMatchObject({ type });
      const subscribed = await gateway.api("POST", `/apps/${app.id}/events/subscribe`, {
        eventUid: `in:${type}`,
      });
      expect(subscribed).toMatchObject({ topics: [topic] });
    }
  });

  it("continue to be published to the topic that an earlier version named differently, even after the channel changes", async () => {
    const app = await installApp(gateway, [channel(TYPE)]);
    const [{ id, url } = { id: "", url: null }] = app.channels;
    const old = app.topicOf("in", "order%2Bcreated%40v2");
    await stores.db.updateTable("topics").set({ topic: old }).where("appId", "=", app.id).execute();

    // The next write makes the workers read the row again, as they do when they start.
    await gateway.api("PUT", `/apps/${app.id}/channels/${id}`, {
      events: [definition(TYPE), definition(CYRILLIC)],
    });
    const posted = async (type: string, n: number) => (await post(url, type, n)).events?.[0]?.topic;
    await until(async () => (await posted(CYRILLIC, 1)) === app.topicOf("in", CYRILLIC));
    expect(await posted(TYPE, 1)).toBe(old);
    expect(await fieldsOn(stores, old, "data")).toEqual(["1"]);

    const subscription = await gateway.api<{ topics: string[]; id: string }>(
      ...([
        "POST",
        `/apps/${app.id}/events/subscribe`,
        { eventUid: `in:${TYPE}`, startAt: "earliest" },
      ] as const),
    );
    expect(subscription.topics).toEqual([old]);
    await until(async () => (await stores.client.smembers(`inlet:sub:${subscription.id}`)).includes(old));
    const listed = await gateway.api<{ topic: string }[]>("GET", `/apps/${app.id}/topics`);
    expect(listed.map(({ topic }) => topic)).toEqual([old, app.topicOf("in", CYRILLIC)]);
    const explained = await gateway.api("POST", `/apps/${app.id}/channels/${id}/explain`, {
      body: JSON.stringify({ type: TYPE, id: "x", n: 2 }),
      events: [definition(TYPE)],
    });
    expect(JSON.stringify(explained)).toContain(old);

    // A definition that is removed and added again finds its topic.
    await gateway.api("PUT", `/apps/${app.id}/channels/${id}`, { events: [definition(CYRILLIC)] });
    await gateway.api("PUT", `/apps/${app.id}/channels/${id}`, { events: [definition(TYPE)] });
    await until(async () => (await posted(TYPE, 2)) === old);
    expect(await stores.client.exists(app.topicOf("in", TYPE))).toBe(0);

    await gateway.api("DELETE", `/apps/${app.id}/channels/${id}?purge=true`);
    await until(async () => (await stores.client.exists(old)) === 0);
  });
});
