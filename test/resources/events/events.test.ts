import { describe, expect, it } from "vitest";
import { insertDeadLetter } from "../../../src/data/subscriptions/dead-letters.ts";
import { deadLettersKey } from "../../../src/event/subscription-keys.ts";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";

const spine = opened(startTestSpine);

const types = ["push", "a/b c%", "other"];
const install = () =>
  spine.install({
    uid: "main",
    kind: "webhook",
    events: types.map((type) => ({ type, typePath: "$.t", idPath: "$.id" })),
  });

async function installWithEvents(count: number) {
  const app = await install();
  const entries: { topic: string; entryId: string }[] = [];
  for (let i = 0; i < count; i++) {
    const { events } = await spine.send(app.channels[0].id, { t: types[i % types.length], id: String(i) });
    entries.push(...events.map(({ topic, entryId }) => ({ topic, entryId })));
  }
  // Sequence numbers within a millisecond are counted per topic, so entries are ordered by id and then by topic.
  const keyOf = ({ topic, entryId }: { topic: string; entryId: string }) => `${entryId} ${topic}`;
  entries.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  return { app, entries };
}

const placesOf = (body: { topic: string; entryId: string }[]) =>
  body.map(({ topic, entryId }) => ({ topic, entryId }));
const at = (appId: string, { topic, entryId }: { topic: string; entryId: string }) =>
  `/apps/${appId}/events/${encodeURIComponent(topic)}/${entryId}`;

/** The fields that every entry has. */
const REQUIRED = ["specversion", "1.0", "id", "1", "source", "/other", "type", "push"] as const;

describe("an event in a response", () => {
  it("is CloudEvents JSON, in which every number of the data has exactly the digits that were received", async () => {
    const app = await install();
    const text = '{"t":"push","id":"1","big":12345678901234567890,"one":1.0,"e":1E+2,"s":"\\u00e9"}';
    const { events } = await spine.send(app.channels[0].id, text);
    const [event] = events;
    if (!event) throw new Error("nothing was published");
    const answer = await spine.api.app.request(`/v1${at(app.id, event)}`, {
      headers: { authorization: `Bearer ${await spine.api.keyWith("apps.read")}` },
    });
    expect(answer.headers.get("content-type")).toBe("application/json");
    const json = await answer.text();
    expect(json).toContain(`"data":${text}`);
    expect(JSON.parse(json)).toMatchObject({
      specversion: "1.0",
      id: "1",
      source: `/apps/${app.id}/channels/main`,
      type: "push",
      datacontenttype: "application/json",
      topic: event.topic,
      entryId: event.entryId,
    });
    expect(json).not.toContain(app.channels[0].id);
  });

  it("contains text data as a JSON string, and binary data in base64", async () => {
    const app = await spine.install({ uid: "raw", kind: "webhook", events: [{ type: "all" }] });
    const [{ id: channelId }] = app.channels;
    await spine.send(channelId, "1,2\n", { "content-type": "text/csv" });
    await spine.send(channelId, Buffer.from([0xff, 0x00]), { "content-type": "application/octet-stream" });
    const body = await spine.api.call.get(`/apps/${app.id}/events`);
    expect(body[0]).toMatchObject({ datacontenttype: expect.stringContaining("text/csv"), data: "1,2\n" });
    expect(body[1]).toMatchObject({ data_base64: "/wA=" });
    expect(body[1]).not.toHaveProperty("data");
  });

  it("is valid JSON even if another Redis client stored data that is not valid JSON", async () => {
    const { app, entries } = await installWithEvents(1);
    const topic = entries[0]?.topic ?? "";
    const written = [...REQUIRED, "datacontenttype", "application/json", "data", '{"a":'];
    await spine.server.client.xadd(topic, "*", ...written);
    const body = await spine.api.call.get(`/apps/${app.id}/events`);
    expect(body[1].data).toBe('{"a":');
  });
});

describe("the events of an app", () => {
  it("are listed in pages and in order of creation across topics, with the total count", async () => {
    const { app, entries } = await installWithEvents(11);
    const pages = await Promise.all(
      [0, 4, 8, 12].map((offset) => spine.api.call("GET", `/apps/${app.id}/events?limit=4&offset=${offset}`)),
    );
    expect(pages.flatMap(({ body }) => placesOf(body))).toEqual(entries);
    expect(pages.map(({ headers }) => headers.get("x-total-count"))).toEqual(["11", "11", "11", "11"]);
  });

  it("can be filtered by type and by the time of publication", async () => {
    const { app, entries } = await installWithEvents(6);
    const byType = await spine.api.call("GET", `/apps/${app.id}/events?type=${encodeURIComponent("a/b c%")}`);
    expect(placesOf(byType.body)).toEqual(entries.filter(({ topic }) => topic.endsWith("c%25")));
    expect(byType.headers.get("x-total-count")).toBe("2");
    const ms = Number.parseInt(entries[3]?.entryId ?? "", 10);
    const time = new Date(ms).toISOString();
    const msOf = ({ entryId }: { entryId: string }) => Number.parseInt(entryId, 10);
    const from = await spine.api.call("GET", `/apps/${app.id}/events?from=${time}&limit=1`);
    const later = entries.filter((entry) => msOf(entry) >= ms);
    expect(placesOf(from.body)).toEqual(later.slice(0, 1));
    expect(from.headers.get("x-total-count")).toBe(String(later.length));
    const to = await spine.api.call("GET", `/apps/${app.id}/events?to=${time}`);
    expect(placesOf(to.body)).toEqual(entries.filter((entry) => msOf(entry) < ms));
  });

  it("are listed in the right order across topics with more entries than one read from Redis returns", async () => {
    const app = await install();
    const rows = await spine.api.database.db
      .selectFrom("topics")
      .select("topic")
      .where("appId", "=", app.id)
      .orderBy("type")
      .execute();
    const ids: string[] = [];
    const pipeline = spine.server.client.pipeline();
    for (let i = 0; i < 450; i++) {
      const topic = rows[i % 7 === 0 ? 0 : 1]?.topic ?? "";
      ids.push(`${1_000 + Math.floor(i / 3)}-${i}`);
      pipeline.xadd(topic, `${1_000 + Math.floor(i / 3)}-${i}`, ...REQUIRED, "data", "1");
    }
    await pipeline.exec();
    const read = (offset: number) => spine.api.call.get(`/apps/${app.id}/events?limit=200&offset=${offset}`);
    const all = [...(await read(0)), ...(await read(200)), ...(await read(400))];
    expect(all.map(({ entryId }: { entryId: string }) => entryId)).toEqual(ids);
  });

  it("are not listed if the request has a malformed time, a limit over 200 or an offset that is too high", async () => {
    const app = await install();
    for (const [query, path] of [
      ["from=yesterday", "from"],
      ["limit=201", "limit"],
      ["offset=9999", "offset"],
    ]) {
      const refusal = await spine.api.call.expectRejection("GET", `/apps/${app.id}/events?${query}`);
      expect(refusal).toEqual({ status: 400, code: "invalid_parameters", paths: [path] });
    }
  });
});

describe("one event", () => {
  it("can be read and deleted by topic and entry id, with encoded or plain slashes in the topic", async () => {
    const { app, entries } = await installWithEvents(2);
    const event = entries.find(({ topic }) => topic.endsWith("c%25"));
    if (!event) throw new Error("nothing was published");
    expect(event.topic).toContain("a/b%20c%25");
    const found = await spine.api.call.get(at(app.id, event));
    expect(found).toMatchObject({ ...event, type: "a/b c%" });
    const slashes = encodeURIComponent(event.topic).replaceAll("%2F", "/");
    expect(await spine.api.call.get(`/apps/${app.id}/events/${slashes}/${event.entryId}`)).toEqual(found);
    expect(await spine.api.call.delete(at(app.id, event))).toEqual({ id: event.entryId });
    for (const method of ["GET", "DELETE"]) {
      expect((await spine.api.call(method, at(app.id, event))).status).toBe(404);
    }
    expect(await spine.server.client.xlen(event.topic)).toBe(0);
  });

  it("is deleted with all its copies in quarantine and dead letters, and no further copy is written afterwards", async () => {
    const app = await install();
    const [channel] = app.channels;
    const person = { t: "push", id: "7", name: "Ada Lovelace" };
    const { events } = await spine.send(channel.id, person);
    const [event] = events;
    if (!event) throw new Error("nothing was published");
    const { topic, entryId } = event;
    await spine.send(channel.id, { ...person, name: "Ada King" });
    const kept = await spine.send(channel.id, { t: "push", name: "Grace Hopper" });
    const { id: subscriptionId } = await spine.api.call.post(`/apps/${app.id}/events/subscribe`, {
      eventUid: "*",
    });
    const { db } = spine.api.database;
    const fields = ["id", "7", "type", "push", "data", JSON.stringify(person)];
    const letter = { subscriptionId, topic, entryId, type: "push", fields, attempts: [], reason: "HTTP 500" };
    await insertDeadLetter(db, letter, Date.now());
    const dead = deadLettersKey(topic, subscriptionId);
    for (const letterOf of [entryId, "1-1"])
      await spine.redis.call("xadd", [dead, "*", "entry-id", letterOf, "attempts", 1, ...fields]);

    expect(await spine.api.call.delete(at(app.id, event))).toEqual({ id: entryId });
    const quarantine = await spine.api.call.get(`/apps/${app.id}/quarantine`);
    expect(quarantine.map(({ id }: { id: string }) => id)).toEqual([kept.quarantine[0]?.id]);
    const letters = `/apps/${app.id}/subscriptions/${subscriptionId}/dead-letters`;
    expect(await spine.api.call.get(letters)).toEqual([]);
    expect(await spine.redis.call("xlen", [dead])).toBe(1);
    // A handler that held the event during the deletion gives up only now.
    await insertDeadLetter(db, letter, Date.now());
    expect(await spine.api.call.get(letters)).toEqual([]);
    expect((await spine.api.call("DELETE", at(app.id, event))).status).toBe(404);
  });

  describe("after it is deleted", () => {
    const long = { note: "n".repeat(64) };
    const idsIn = async (appId: string): Promise<string[]> =>
      (await spine.api.call.get(`/apps/${appId}/quarantine`)).map(({ id }: { id: string }) => id);

    /** Installs an app that makes an event and a quarantined item of each delivery. */
    async function installHalf(path: { idPath?: string }) {
      const events = [
        { type: "kept", payloadPath: "$.data", ...path },
        { type: "failed", schema: { const: "never" }, ...path },
      ];
      const app = await spine.install({ uid: "half", kind: "webhook", events });
      return { app, send: (body: object) => spine.send(app.channels[0].id, body) };
    }

    /** Returns a CloudEvent without data. */
    const bare = (id: string) => ({ specversion: "1.0", id, source: "/s", type: "all" });
    it.each([
      ["equal data", "webhook", () => long, "application/json"],
      ["no data", "cloudevents", bare, "application/cloudevents+json"],
    ])("leaves buffered deliveries of a paused channel that have other ids and %s", async (_, kind, bodyOf, type) => {
      const app = await spine.install({ uid: "beat", kind, events: [{ type: "all" }] });
      const [{ id: channelId }] = app.channels;
      const send = (id: string) => spine.send(channelId, bodyOf(id), { "content-type": type });
      const [event] = (await send("1")).events;
      if (!event) throw new Error("nothing was published");
      await spine.api.call.post(`/apps/${app.id}/channels/${channelId}/pause`);
      await send("2");
      const waiting = await idsIn(app.id);
      expect(waiting).toHaveLength(1);
      await spine.api.call.delete(at(app.id, event));
      expect(await idsIn(app.id)).toEqual(waiting);
    });

    it.each([
      ["have ids from an idPath", long, { idPath: "$.id" }],
      ["have too little data to identify them", {}, {}],
    ])("leaves other quarantined deliveries with equal data if they %s", async (_, data, path) => {
      const { app, send } = await installHalf(path);
      const [event] = (await send({ id: "1", data })).events;
      if (!event) throw new Error("nothing was published");
      const other = await send({ id: "2", data });
      await spine.api.call.delete(at(app.id, event));
      expect(await idsIn(app.id)).toContain(other.quarantine[0]?.id);
    });

    it("leaves no quarantined delivery with the same data if the event definition has no idPath", async () => {
      const { app, send } = await installHalf({});
      const [event] = (await send({ data: long })).events;
      if (!event) throw new Error("nothing was published");
      const other = await send({ data: { note: "m".repeat(64) } });
      await spine.api.call.delete(at(app.id, event));
      expect(await idsIn(app.id)).toEqual([other.quarantine[0]?.id]);
    });
  });

  it("is deleted from the dead letters, even if its topic no longer contains the event", async () => {
    const app = await install();
    const { events } = await spine.send(app.channels[0].id, { t: "push", id: "8" });
    const [event] = events;
    if (!event) throw new Error("nothing was published");
    const { topic, entryId } = event;
    const { id: subscriptionId } = await spine.api.call.post(`/apps/${app.id}/events/subscribe`, {
      eventUid: "*",
    });
    const fields = ["id", "8", "type", "push", "data", "{}"];
    const letter = { subscriptionId, topic, entryId, type: "push", fields, attempts: [], reason: "HTTP 500" };
    await insertDeadLetter(spine.api.database.db, letter, Date.now());
    await spine.topics.deleteEntry(topic, entryId);
    expect(await spine.api.call.delete(at(app.id, event))).toEqual({ id: entryId });
    const letters = `/apps/${app.id}/subscriptions/${subscriptionId}/dead-letters`;
    expect(await spine.api.call.get(letters)).toEqual([]);
  });

  it("cannot be read through another app's topic, another Redis key, or an unknown or malformed entry id", async () => {
    const { app, entries } = await installWithEvents(1);
    const other = await installWithEvents(1);
    const [event] = entries;
    const [foreign] = other.entries;
    if (!event || !foreign) throw new Error("nothing was published");
    await spine.server.client.set("inlet:secret", "1");
    for (const path of [
      at(app.id, foreign),
      at(app.id, { topic: "inlet:secret", entryId: "1-1" }),
      at(app.id, { ...event, entryId: "1-1" }),
      at(app.id, { ...event, entryId: `${"9".repeat(30)}-1` }),
      at(app.id, { ...event, entryId: "18446744073709551616-0" }),
      `/apps/${app.id}/events/${event.entryId}`,
      `/apps/${app.id}/events/${encodeURIComponent(event.topic)}/x`,
    ]) {
      expect((await spine.api.call("GET", path)).status, path).toBe(404);
    }
  });
});

it("events can be listed newest first, and searched by channel, event id and a field of their data", async () => {
  const events = ["a", "b"].map((type) => ({ type, typePath: "$.type", idPath: "$.id" }));
  const app = await spine.install(
    { uid: "one", kind: "webhook", config: {}, events },
    { uid: "two", kind: "webhook", config: {}, events },
  );
  const sent = [
    ["one", { type: "a", id: "1", person: { name: "Ada", age: 36 } }],
    ["one", { type: "b", id: "2", person: { name: "Bob" } }],
    ["two", { type: "a", id: "1", person: { name: "Ada", admin: true } }],
    ["two", "no JSON"],
  ] as const;
  const channelId = (uid: string) => app.channels.find((one: { uid: string }) => one.uid === uid).id;
  for (const [uid, body] of sent) await spine.send(channelId(uid), body);
  const idsBy = async (query: string) =>
    (await spine.api.call.get(`/apps/${app.id}/events?${query}`)).map(
      ({ id, source }: { id: string; source: string }) => `${source.split("/").at(-1)} ${id}`,
    );
  const all = await idsBy("");
  expect(await idsBy("order=newest")).toEqual(all.toReversed());
  expect(await idsBy("order=newest&limit=1&offset=1")).toEqual(all.toReversed().slice(1, 2));
  expect(await idsBy("channel=one")).toEqual(["one 1", "one 2"]);
  expect(await idsBy("id=1")).toEqual(["one 1", "two 1"]);
  expect(await idsBy("id=1&order=newest&limit=1")).toEqual(["two 1"]);
  expect(await idsBy("path=$.person.name&value=Ada")).toEqual(["one 1", "two 1"]);
  expect(await idsBy("path=$.person.name&value=Ada&offset=1")).toEqual(["two 1"]);
  expect(await idsBy("path=$.person.age&value=36")).toEqual(["one 1"]);
  expect(await idsBy("path=$['person']['admin']&value=true")).toEqual(["two 1"]);
  expect(await idsBy("path=$.person&value=Ada")).toEqual([]);
  expect(await idsBy("path=$.person.admin")).toEqual(["two 1"]);
  for (const [query, path] of [
    ["value=1", "path"],
    ["path=$..a&value=1", "path"],
    ["path=a&value=1", "path"],
  ])
    expect(await spine.api.call.expectRejection("GET", `/apps/${app.id}/events?${query}`)).toMatchObject({
      status: 400,
      paths: [path],
    });
});
