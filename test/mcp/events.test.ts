import { createMCPClient } from "@ai-sdk/mcp";
import type { Client } from "@modelcontextprotocol/client";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import type { GivenChannel } from "../support/channels.ts";
import { API_KEY } from "../support/gateway-process.ts";
import { givenGateway } from "../support/given-gateway.ts";
import { until } from "../support/until.ts";
import { connectAgent, GENERATIONS } from "./clients.ts";
import { givenTicks, nameOf, sendTicks, TICK_SCHEMA } from "./ticks.ts";

const gateway = givenGateway();

let channel: GivenChannel;
let client: Client;
beforeAll(async () => {
  channel = await givenTicks(gateway);
  client = await connectAgent(gateway);
});

const pollResult = z.object({
  events: z.array(
    z.looseObject({
      eventId: z.string(),
      name: z.string(),
      timestamp: z.string(),
      data: z.looseObject({}),
      cursor: z.string(),
    }),
  ),
  cursor: z.string(),
  truncated: z.boolean(),
  hasMore: z.boolean(),
  nextPollMs: z.number(),
});

const poll = (name: string, params: object = {}, by: Client = client) =>
  by.request({ method: "events/poll", params: { name, ...params } }, pollResult);

const numbersOf = ({ events }: z.output<typeof pollResult>) => events.map(({ data }) => data.n);

async function findError(request: Promise<unknown>): Promise<{ code: number; data: unknown }> {
  const error = await request.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return error as { code: number; data: unknown };
}

const keyWith = async (...permissions: string[]) => {
  const { id, key } = await gateway.api<{ id: string; key: string }>("POST", "/iam/api-keys", {
    name: permissions.join(),
    permissions,
  });
  return { id, key };
};

describe("events/list", () => {
  it("lists only definitions that are open to agents, with the schema of their data", async () => {
    const other = await givenTicks(gateway, [
      { type: "secret" },
      { type: "list", agents: true, schema: { type: "array" } },
    ]);
    const { events } = await client.request(
      { method: "events/list", params: {} },
      z.looseObject({ events: z.array(z.any()) }),
    );
    const { uid } = await gateway.api<{ uid: string }>("GET", other.appPath);
    const ours = events.filter(({ name }) => name.startsWith(uid));
    expect(ours).toMatchObject([
      { name: `${uid}.in.tick`, delivery: ["poll", "push", "webhook"], payloadSchema: TICK_SCHEMA },
      { name: `${uid}.in.list`, payloadSchema: { type: "object", required: ["value"] } },
    ]);
    expect(ours[0].inputSchema.properties).toHaveProperty("filter");
  });

  it("uses the app's uid in names, and its id if several apps have the uid", async () => {
    const { id: blueprintId } = await gateway.api<{ id: string }>("POST", "/blueprints", {
      title: "twice",
      channels: [{ uid: "in", kind: "webhook", config: {}, events: [{ type: "tick", agents: true }] }],
    });
    const install = () => gateway.api<{ id: string; uid: string }>("POST", "/apps/install", { blueprintId });
    const first = await install();
    const byUid = `${first.uid}.in.tick`;
    await poll(byUid);
    const second = await install();
    expect(second.uid).toBe(first.uid);
    expect(await findError(poll(byUid))).toMatchObject({ code: -32011 });
    for (const { id } of [first, second]) await poll(`${id}.in.tick`);
  });

  it("lists more channels than fit on a page", async () => {
    const channels = Array.from({ length: 25 }, (_, i) => ({
      uid: `c${i}`,
      kind: "webhook",
      config: {},
      events: [{ type: "tick", agents: true }],
    }));
    const { id: blueprintId } = await gateway.api<{ id: string }>("POST", "/blueprints", {
      title: "many",
      channels,
    });
    const { uid } = await gateway.api<{ uid: string }>("POST", "/apps/install", { blueprintId });
    const names = new Set<string>();
    for (let cursor: string | undefined = ""; cursor !== undefined; ) {
      const page: { events: { name: string }[]; nextCursor?: string | undefined } = await client.request(
        { method: "events/list", params: cursor === "" ? {} : { cursor } },
        z.looseObject({
          events: z.array(z.looseObject({ name: z.string() })),
          nextCursor: z.string().optional(),
        }),
      );
      for (const { name } of page.events) names.add(name);
      cursor = page.nextCursor;
    }
    expect([...names].filter((name) => name.startsWith(uid))).toHaveLength(25);
  });

  it("serves the client of the AI SDK", async () => {
    const ai = await createMCPClient({
      transport: {
        type: "http",
        url: `${gateway.origin}/mcp`,
        headers: { authorization: `Bearer ${API_KEY}` },
      },
    });
    const { events } = await ai.experimental_events.list();
    expect(events.map(({ name }) => name)).toContainEqual(expect.stringContaining(".in.tick"));
    await ai.close();
  });
});

describe.each(GENERATIONS)("events/poll by a client of the %s protocol", (generation) => {
  it("returns each event once, in order, in pages", async () => {
    const own = await givenTicks(gateway);
    const by = await connectAgent(gateway, { generation });
    const start = await poll(nameOf(own), {}, by);
    expect(start).toMatchObject({ events: [], hasMore: false, truncated: false });
    await sendTicks(own, 0, 5);
    const first = await poll(nameOf(own), { cursor: start.cursor, maxEvents: 3 }, by);
    expect([numbersOf(first), first.hasMore, first.nextPollMs]).toEqual([[0, 1, 2], true, 0]);
    const rest = await poll(nameOf(own), { cursor: first.cursor }, by);
    expect([numbersOf(rest), rest.hasMore, rest.truncated]).toEqual([[3, 4], false, false]);
    expect(numbersOf(await poll(nameOf(own), { cursor: rest.cursor }, by))).toEqual([]);
    const again = await poll(nameOf(own), { cursor: first.events[0]?.cursor }, by);
    expect(numbersOf(again)).toEqual([1, 2, 3, 4]);
    expect(again.events[0]?.eventId).toBe(first.events[1]?.eventId);
  });
});

describe("events/poll", () => {
  it("returns the payload, the time of the event and the attributes of the CloudEvent", async () => {
    const { cursor } = await poll(nameOf(channel));
    await channel.send({ type: "tick", n: 1_000 });
    const { events } = await poll(nameOf(channel), { cursor });
    const [event] = events;
    expect(event).toMatchObject({
      name: nameOf(channel),
      timestamp: expect.stringMatching(/^\d{4}-.*Z$/),
      data: { type: "tick", n: 1_000 },
      _meta: { "io.inlet/cloudevent": { id: "1000", type: "tick", specversion: "1.0" } },
    });
  });

  it("wraps data that is not an object", async () => {
    const lists = await givenTicks(gateway, [
      { type: "list", typePath: "$.kind", idPath: "$.id", payloadPath: "$.items", agents: true },
    ]);
    const { cursor } = await poll(nameOf(lists, "list"));
    await lists.send({ kind: "list", id: "a", items: [1, 2] });
    expect((await poll(nameOf(lists, "list"), { cursor })).events).toMatchObject([
      { data: { value: [1, 2] } },
    ]);
  });

  it("returns only events that match the filter, and moves past the others", async () => {
    const own = await givenTicks(gateway);
    const filter = { properties: { data: { properties: { n: { multipleOf: 3 } } } } };
    const args = { arguments: { filter } };
    const { cursor } = await poll(nameOf(own), args);
    await sendTicks(own, 1, 8);
    const found = await poll(nameOf(own), { ...args, cursor, maxEvents: 1 });
    expect([numbersOf(found), found.hasMore]).toEqual([[3], true]);
    const rest = await poll(nameOf(own), { ...args, cursor: found.cursor });
    expect([numbersOf(rest), rest.hasMore]).toEqual([[6], false]);
  });

  it("reports truncation exactly once if retention removed unread events", async () => {
    const own = await givenTicks(gateway);
    const topic = own.topicOf("tick");
    const { cursor } = await poll(nameOf(own));
    await sendTicks(own, 0, 6);
    const read = await poll(nameOf(own), { cursor, maxEvents: 2 });
    await gateway.stores.client.xtrim(topic, "MAXLEN", 4);
    expect((await poll(nameOf(own), { cursor: read.cursor })).truncated).toBe(false);
    await gateway.stores.client.xtrim(topic, "MAXLEN", 3);
    const cut = await poll(nameOf(own), { cursor: read.cursor, maxEvents: 1 });
    expect([numbersOf(cut), cut.truncated]).toEqual([[3], true]);
    const rest = await poll(nameOf(own), { cursor: cut.cursor });
    expect([numbersOf(rest), rest.truncated]).toEqual([[4, 5], false]);
    await gateway.stores.client.xtrim(topic, "MAXLEN", 0);
    expect(await poll(nameOf(own), { cursor: rest.cursor })).toMatchObject({ truncated: false, events: [] });
    expect((await poll(nameOf(own), { cursor: cut.cursor })).truncated).toBe(true);
  });

  it("reports truncation if an unread event was deleted for privacy, but not for a read one", async () => {
    const own = await givenTicks(gateway);
    const { cursor } = await poll(nameOf(own));
    await sendTicks(own, 0, 3);
    const { events } = await poll(nameOf(own), { cursor });
    const [, second] = events;
    const path = `${own.appPath}/events/${encodeURIComponent(own.topicOf("tick"))}/${second?.eventId}`;
    await gateway.api("DELETE", path);
    expect(await poll(nameOf(own), { cursor: events[0]?.cursor })).toMatchObject({ truncated: true });
    expect(await poll(nameOf(own), { cursor: events[2]?.cursor })).toMatchObject({ truncated: false });
  });

  it("skips events that are older than maxAgeMs, and says so", async () => {
    const own = await givenTicks(gateway);
    const { cursor } = await poll(nameOf(own));
    await sendTicks(own, 0, 1);
    expect(await poll(nameOf(own), { cursor, maxAgeMs: 3_600_000 })).toMatchObject({ truncated: false });
    const [[entryId = ""] = []] = await gateway.stores.client.xrange(own.topicOf("tick"), "-", "+");
    await until(async () => Date.now() > Number(entryId.split("-")[0]) + 10);
    expect(await poll(nameOf(own), { cursor, maxAgeMs: 1 })).toMatchObject({ truncated: true, events: [] });
  });

  it.each([
    ["an unknown name", "app.in.tick", {}, -32011, { kind: "event" }],
    ["a name without a type", "x", {}, -32011, { kind: "event" }],
    ["an invalid filter", undefined, { arguments: { filter: { type: "nothing" } } }, -32602, undefined],
    ["unknown arguments", undefined, { arguments: { colour: 1 } }, -32602, undefined],
    ["a cursor that was not issued", undefined, { cursor: "abc" }, -32602, { reason: "invalid_cursor" }],
    ["an invalid maxEvents", undefined, { maxEvents: 0 }, -32602, undefined],
  ])("rejects %s", async (_, name, params, code, data) => {
    const error = await findError(poll(name ?? nameOf(channel), params));
    expect(error).toMatchObject({ code, ...(data && { data }) });
  });

  it("rejects a cursor that was issued to another caller, name or arguments", async () => {
    const { cursor } = await poll(nameOf(channel));
    const other = await givenTicks(gateway);
    const code = -32602;
    expect(await findError(poll(nameOf(other), { cursor }))).toMatchObject({ code });
    const args = { arguments: { filter: true } };
    expect(await findError(poll(nameOf(channel), { cursor, ...args }))).toMatchObject({ code });
    const { key } = await keyWith("apps.read");
    const stranger = await connectAgent(gateway, { token: key });
    expect(await findError(poll(nameOf(channel), { cursor }, stranger))).toMatchObject({ code });
  });

  it("needs the permission apps.read, and finds no event type of another organization", async () => {
    const { key } = await keyWith("problems.read");
    const limited = await connectAgent(gateway, { token: key });
    expect(await findError(poll(nameOf(channel), {}, limited))).toMatchObject({ code: -32012 });
    const { apiKey } = await gateway.api<{ apiKey: { key: string } }>("POST", "/organizations", {
      name: "other",
    });
    const foreign = await connectAgent(gateway, { token: apiKey.key });
    expect(await findError(poll(nameOf(channel), {}, foreign))).toMatchObject({ code: -32011 });
    const { events } = await foreign.request(
      { method: "events/list", params: {} },
      z.looseObject({ events: z.array(z.any()) }),
    );
    expect(events).toEqual([]);
  });
});
