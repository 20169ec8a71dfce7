import { createServer } from "node:http";
import {
  createMCPClient,
  experimental_createMCPEventWebhook as createMCPEventWebhook,
  type Experimental_MCPEvent as MCPEvent,
  type Experimental_MCPEventStore as MCPEventStore,
  type Experimental_MCPEventSubscription as MCPEventSubscription,
} from "@ai-sdk/mcp";
import { getRequestListener } from "@hono/node-server";
import { expect, it } from "vitest";
import { givenChannel } from "../support/channels.ts";
import { API_KEY } from "../support/gateway-process.ts";
import { givenGateway } from "../support/given-gateway.ts";
import { listenLocally } from "../support/local-server.ts";
import { until } from "../support/until.ts";

const gateway = givenGateway({ INLET_ALLOW_NETWORKS: "127.0.0.0/8" });

function createStore(): MCPEventStore & { readonly all: Map<string, MCPEventSubscription> } {
  const all = new Map<string, MCPEventSubscription>();
  return {
    all,
    get: async (key) => all.get(key),
    getById: async (id) => [...all.values()].find((one) => one.id === id),
    set: async (one) => void all.set(one.key, one),
    async update(key, patch) {
      const before = all.get(key);
      if (before) all.set(key, { ...before, ...patch });
    },
    delete: async (key) => void all.delete(key),
  };
}

it("an agent with the AI SDK subscribes by webhook, verifies, receives, refreshes and unsubscribes", async () => {
  const channel = await givenChannel(gateway, { uid: "in", events: [{ type: "tick", agents: true }] });
  const store = createStore();
  const received: MCPEvent[] = [];
  const errors: unknown[] = [];
  let terminations = 0;
  const webhook = createMCPEventWebhook({
    store,
    onEvent: async ({ event }) => void received.push(event),
    onTerminated: async () => void terminations++,
    onError: (error) => void errors.push(error),
  });
  await using server = await listenLocally(
    createServer(getRequestListener(webhook, { overrideGlobalObjects: false })),
  );
  const client = await createMCPClient({
    transport: {
      type: "http",
      url: `${gateway.origin}/mcp`,
      headers: { authorization: `Bearer ${API_KEY}` },
    },
    experimental_events: { store },
  });
  const delivery = { mode: "webhook", url: `${server.origin}/hook`, allowInsecureLocalhost: true } as const;
  const { events } = await client.experimental_events.list();
  expect(events).toMatchObject([{ delivery: ["poll", "push", "webhook"] }]);
  const listed = String(events[0]?.name);
  const { id } = await client.experimental_events.subscribe({ name: listed, delivery });
  await channel.send({ n: 1 });
  await until(() => received.length === 1);
  expect(received).toMatchObject([{ name: listed, data: { n: 1 } }]);
  const before = [...store.all.values()][0];
  expect(before?.cursor).toBe(received[0]?.cursor);
  const refreshed = await client.experimental_events.refresh({ id });
  expect(refreshed).toMatchObject({ id, cursor: before?.cursor });
  await channel.send({ n: 2 });
  await until(() => received.length === 2);
  await client.experimental_events.unsubscribe({ id });
  expect(store.all.size).toBe(0);

  await client.experimental_events.subscribe({ name: listed, delivery });
  await gateway.api("PUT", channel.path, { events: [{ type: "tick" }] });
  await until(() => terminations === 1);
  expect(store.all.size).toBe(0);
  expect(errors).toEqual([]);
  await client.close();
});
