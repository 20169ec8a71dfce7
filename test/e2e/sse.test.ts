import { createServer, type RequestListener } from "node:http";
import { afterAll, beforeAll, expect, it } from "vitest";
import { channelOf, givenChannel, type InstalledApp, installApp } from "../support/channels.ts";
import {
  createTestStores,
  fieldsOn,
  startTestGateway,
  type TestGateway,
  type TestStores,
} from "../support/gateway.ts";
import { readMetrics } from "../support/gateway-process.ts";
import { listenLocally } from "../support/local-server.ts";
import { type StreamServer, startStreamServer } from "../support/stream-server.ts";
import { until } from "../support/until.ts";

let stores: TestStores;
let server: StreamServer;
let gateway: TestGateway;
let app: InstalledApp;

const start = () => startTestGateway({ ...stores.env, INLET_ALLOW_NETWORKS: "127.0.0.0/8" });

beforeAll(async () => {
  [stores, server] = await Promise.all([createTestStores(), startStreamServer()]);
  gateway = await start();
  const config = { url: server.url, reconnect: { initialMs: 50, maxMs: 200 } };
  const events = ["even", "odd"].map((type) => ({ type, typePath: "$event" }));
  app = await installApp(gateway, [{ uid: "in", kind: "sse", config, events }]);
});
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]();
  await server?.[Symbol.asyncDispose]();
  await stores?.[Symbol.asyncDispose]();
});

async function startPlainServer(listener: RequestListener) {
  const local = await listenLocally(createServer(listener));
  return { ...local, url: `${local.origin}/` };
}

const numbers = (parity: number, to: number): number[] =>
  Array.from({ length: Math.ceil((to - parity) / 2) }, (_, i) => 2 * i + parity);

async function count(): Promise<number> {
  const [even, odd] = await Promise.all(
    ["even", "odd"].map((type) => stores.client.xlen(app.topicOf("in", type))),
  );
  return (even ?? 0) + (odd ?? 0);
}

/** Waits until the first `total` events are on their topics, and checks their ids and data. */
async function expectAll(total: number): Promise<void> {
  await until(async () => (await count()) >= total, { everyMs: 20 });
  for (const [parity, type] of ["even", "odd"].entries()) {
    const topic = app.topicOf("in", type);
    expect((await fieldsOn(stores, topic, "id")).map(Number)).toEqual(numbers(parity, total));
    const data = await fieldsOn(stores, topic, "data");
    expect(data.map((text) => JSON.parse(text))).toEqual(numbers(parity, total).map((n) => ({ n })));
  }
}

it("the gateway connects to an event stream once a subscription exists, and publishes its events once and in order", async () => {
  expect(channelOf(app).url).toBeNull();
  server.make(10);
  expect(server.told).toEqual([]);
  await gateway.api("POST", `/apps/${app.id}/events/subscribe`, { eventUid: "in:*" });
  await expectAll(10);
  server.make(1_000);
  await expectAll(1_010);
  expect(server.told).toEqual([""]);
});

it("a gateway that starts while a stream is sending many events continues after the last published event", async () => {
  let total = 1_010;
  for (const _ of [1, 2]) {
    const connections = server.told.length;
    const before = total;
    const make = (events: number): void => {
      server.make(events);
      total += events;
    };
    // The flood continues until the next gateway has connected, so one gateway stops and the next starts in the middle of it.
    make(2_000);
    const flood = setInterval(() => make(1), 10);
    try {
      await until(async () => (await count()) > before + 100);
      await gateway[Symbol.asyncDispose]();
      gateway = await start();
      await until(() => server.told.length > connections);
    } finally {
      clearInterval(flood);
    }
    await expectAll(total);
    expect(server.told).toHaveLength(connections + 1);
    const lastId = Number(server.told.at(-1));
    expect(lastId).toBeGreaterThan(before);
    expect(lastId).toBeLessThan(total - 1);
    expect(server.open()).toBe(1);
  }
});

it("the metric inlet_sources counts the sources of a worker by state, such as open or paused", async () => {
  const count = async (wanted: string) => {
    const metrics = await readMetrics(gateway.origin);
    return Number(new RegExp(`^inlet_sources\\{state="${wanted}"\\} (\\d+)$`, "m").exec(metrics)?.[1]);
  };
  // The worker may still count the source of an earlier test as running.
  const paused = () =>
    stores.db.selectFrom("channels").where("state", "=", "paused").select("number").execute();
  await until(async () => (await count("paused")) === (await paused()).length);
  const before = [await count("open"), await count("paused")] as const;
  await using over = await startPlainServer((_, response) => response.writeHead(204).end());
  await using open = await startPlainServer((_, response) =>
    response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders(),
  );
  const channelTo = (uid: string, url: string) => ({
    uid,
    kind: "sse",
    config: { url, run: "always" },
    events: [{ type: "any" }],
  });
  await installApp(gateway, [channelTo("over", over.url), channelTo("open", open.url)]);
  await until(
    async () => (await count("open")) === before[0] + 1 && (await count("paused")) === before[1] + 1,
  );
});

it("a source that the upstream server ended is logged with its app, channel and reason", async () => {
  await using upstream = await startPlainServer((_, response) => response.writeHead(204).end());
  const config = { url: upstream.url, run: "always" };
  const over = await givenChannel(gateway, { uid: "over", kind: "sse", config, events: [{ type: "any" }] });
  const stopped = () =>
    gateway.lines.find(({ event, appId }) => event === "source.stopped" && appId === over.appId);
  await until(() => stopped() !== undefined);
  expect(stopped()).toMatchObject({
    channelUid: "over",
    organizationId: over.organizationId,
    state: "paused",
    end: "finished",
    reason: expect.stringContaining("204"),
  });
});

it("a byte order mark at the start of an event's data stays in the published data", async () => {
  await using upstream = await startPlainServer((_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(
      "\uFEFFid: 1\ndata: \uFEFFa\n\nid: 2\ndata:\uFEFF\uFEFF\ndata: \uFEFFb\n\nid: 3\ndata: c\n\n",
    );
  });
  const config = { url: upstream.url, dataFormat: "text", run: "always" };
  const events = [{ type: "all" }, { type: "\uFEFFa", typePath: "$", payloadPath: "$" }];
  const marked = await givenChannel(gateway, { kind: "sse", config, events });
  const topic = marked.topicOf("all");
  await until(async () => (await stores.client.xlen(topic)) === 3);
  expect(await fieldsOn(stores, topic, "data")).toEqual(["\uFEFFa", "\uFEFF\uFEFF\n\uFEFFb", "c"]);
  const picked = await stores.client.keys(`*${marked.appId}.main.*a`);
  expect(await fieldsOn(stores, picked[0] ?? "", "data")).toEqual(['"\uFEFFa"']);
});
