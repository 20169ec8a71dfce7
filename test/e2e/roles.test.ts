import { describe, expect, it } from "vitest";
import { givenChannel } from "../support/channels.ts";
import { post } from "../support/deliver.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { readMetrics } from "../support/gateway-process.ts";
import { givenGateway } from "../support/given-gateway.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";

const api = givenGateway({ INLET_ROLES: "api" });
const { stores } = api;
const hooks = givenGateway({ INLET_ROLES: "hooks" }, { stores });
const delivery = givenGateway({ INLET_ROLES: "delivery" }, { stores });
const channel = opened(() => givenChannel(api, { events: [{ type: "made", idPath: "$.id" }] }));

const send = (origin: string, id: string) => post(`${origin}${channel.hookPath}`, { id });

const statusOf = async (gateway: Pick<TestGateway, "origin">, path: string): Promise<number> =>
  (await fetch(`${gateway.origin}${path}`)).status;

describe("gateways that run only one role each (API, hooks or delivery)", () => {
  it("serve only the paths of their role, health checks and metrics", async () => {
    expect((await send(hooks.origin, "1")).body.published).toBe(1);
    expect((await send(api.origin, "1")).status).toBe(404);
    expect((await send(delivery.origin, "1")).status).toBe(404);
    expect(await statusOf(hooks, "/v1/apps")).toBe(404);
    expect(await statusOf(delivery, "/v1/apps")).toBe(404);
    expect(await statusOf(api, "/v1/apps")).toBe(401);
    for (const gateway of [api, hooks, delivery]) {
      for (const path of ["/healthz", "/readyz"]) expect(await statusOf(gateway, path)).toBe(200);
      expect(await statusOf(gateway, "/metrics")).toBe(401);
      expect(await readMetrics(gateway.origin)).toContain("inlet_");
    }
  });

  it("work together: the hooks gateway publishes to a new event definition, and the delivery gateway creates its consumer group", async () => {
    const { group } = await api.api<{ group: string }>("POST", `${channel.appPath}/events/subscribe`, {
      eventUid: "main:*",
      startAt: "earliest",
    });
    await api.api("PUT", channel.path, {
      events: [
        { type: "made", idPath: "$.id" },
        { type: "copied", idPath: "$.id" },
      ],
    });
    const groups = async () => {
      const topics = await api.api<{ type: string; groups: { name: string }[] }[]>(
        "GET",
        `${channel.appPath}/topics`,
      );
      return topics.find(({ type }) => type === "copied")?.groups.map(({ name }) => name);
    };
    await until(async () => (await groups())?.includes(group) === true);
    let tries = 0;
    await until(async () => (await send(hooks.origin, `both-${++tries}`)).body.published === 2);
  });
});

describe("a stopping gateway", () => {
  it("completes every accepted request under load, and has published each event that it acknowledged", async () => {
    const gateway = await startTestGateway({ ...stores.env, INLET_ROLES: "hooks" });
    const acknowledged: string[] = [];
    const statuses = new Set<number>();
    const sender = async (name: number): Promise<void> => {
      for (let i = 0; ; i++) {
        // `undefined` means that the gateway has closed its port or the connection.
        const sent = await send(gateway.origin, `${name}-${i}`).catch(() => undefined);
        if (sent === undefined) return;
        statuses.add(sent.status);
        if (sent.status !== 200) continue;
        acknowledged.push(sent.body.events[0]?.entryId ?? "none");
      }
    };
    const senders = Array.from({ length: 16 }, (_, name) => sender(name));
    await until(() => acknowledged.length > 200);
    await gateway[Symbol.asyncDispose]();
    await Promise.all(senders);
    expect([...statuses]).toEqual([200]);
    const topic = channel.topicOf("made");
    const kept = new Set((await stores.client.xrange(topic, "-", "+")).map(([entryId]) => entryId));
    expect(acknowledged.filter((entryId) => !kept.has(entryId))).toEqual([]);
  });
});
