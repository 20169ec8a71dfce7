import { afterAll, beforeAll, expect, it } from "vitest";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { type SharedStores, startSharedStores } from "../support/stores.ts";
import { type StreamServer, startStreamServer } from "../support/stream-server.ts";
import { until } from "../support/until.ts";

interface Channel {
  readonly id: string;
  readonly appId: string;
  readonly organizationId: string;
  readonly url: string | null;
}

let stores: SharedStores;
let server: StreamServer;
let gateway: GatewayProcess;
let channel: Channel;

const start = () => startGatewayProcess({ ...stores.env, INLET_ALLOW_NETWORKS: "127.0.0.0/8" });

beforeAll(async () => {
  [stores, server] = await Promise.all([startSharedStores(), startStreamServer()]);
  gateway = await start();
  const config = { url: server.url, reconnect: { initialMs: 50, maxMs: 200 } };
  const events = ["even", "odd"].map((type) => ({ type, typePath: "$event" }));
  const channels = [{ uid: "in", kind: "sse", config, events }];
  const blueprint = await gateway.api<{ id: string }>("POST", "/blueprints", { title: "stream", channels });
  const app = await gateway.api<{ channels: [Channel] }>("POST", "/apps/install", {
    blueprintId: blueprint.id,
  });
  channel = app.channels[0];
});
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]();
  await server?.[Symbol.asyncDispose]();
  await stores?.[Symbol.asyncDispose]();
});

const topicOf = (type: string): string =>
  `events.${channel.organizationId}.apps.app.event_received.${channel.appId}.in.${type}`;

/** The numbers on a topic, by the ids of its events and by their data. */
async function onTopic(type: string): Promise<readonly number[]> {
  const entries = await stores.client.xrange(topicOf(type), "-", "+");
  return entries.map(([, fields]) => {
    const field = (name: string): string => fields[fields.indexOf(name) + 1] ?? "";
    expect(JSON.parse(field("data"))).toEqual({ n: Number(field("id")) });
    return Number(field("id"));
  });
}

const numbers = (parity: number, to: number): number[] =>
  Array.from({ length: Math.ceil((to - parity) / 2) }, (_, i) => 2 * i + parity);

const count = async (): Promise<number> =>
  (await stores.client.xlen(topicOf("even"))) + (await stores.client.xlen(topicOf("odd")));

async function expectAll(total: number): Promise<void> {
  await until(async () => (await count()) >= total, { everyMs: 20 });
  expect(await onTopic("even")).toEqual(numbers(0, total));
  expect(await onTopic("odd")).toEqual(numbers(1, total));
}

it("is opened when a subscription covers it, and its events are on their topics, once and in order", async () => {
  expect(channel.url).toBeNull();
  server.make(10);
  expect(server.told).toEqual([]);
  await gateway.api("POST", `/apps/${channel.appId}/events/subscribe`, { eventUid: "in:*" });
  await expectAll(10);
  server.make(1_000);
  await expectAll(1_010);
  expect(server.told).toEqual([""]);
});

it("goes on where it stood when the gateway is started anew in the middle of a flood", async () => {
  let total = 1_010;
  for (const _ of [1, 2]) {
    server.make(10_000);
    const connections = server.told.length;
    const before = total;
    total += 10_000;
    await until(async () => (await count()) > before + 100, { everyMs: 1 });
    await gateway[Symbol.asyncDispose]();
    gateway = await start();
    await expectAll(total);
    // It was in the middle: the next connection began after what was written, and before the end.
    expect(server.told).toHaveLength(connections + 1);
    const told = Number(server.told.at(-1));
    expect(told).toBeGreaterThan(before);
    expect(told).toBeLessThan(total - 1);
    expect(server.open()).toBe(1);
  }
});
