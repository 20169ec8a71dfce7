import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Outcome } from "../../src/event/outcome.ts";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { type SharedStores, startSharedStores } from "../support/stores.ts";
import { until } from "../support/until.ts";

let stores: SharedStores;
let api: GatewayProcess;
let hooks: GatewayProcess;
let delivery: GatewayProcess;
let app: { readonly id: string; readonly channels: readonly { readonly id: string; readonly url: string }[] };
let hookPath: string;

const startWith = (roles: string): Promise<GatewayProcess> =>
  startGatewayProcess({ ...stores.env, INLET_ROLES: roles });

beforeAll(async () => {
  stores = await startSharedStores();
  [api, hooks, delivery] = await Promise.all([startWith("api"), startWith("hooks"), startWith("delivery")]);
  const blueprint = await api.api<{ id: string }>("POST", "/blueprints", {
    title: "Split",
    channels: [{ uid: "in", kind: "webhook", events: [{ type: "made", idPath: "$.id" }] }],
  });
  app = await api.api("POST", "/apps/install", { blueprintId: blueprint.id });
  hookPath = new URL(app.channels[0]?.url ?? "").pathname;
});
afterAll(async () => {
  await Promise.all([api, hooks, delivery].map((gateway) => gateway?.[Symbol.asyncDispose]()));
  await stores?.[Symbol.asyncDispose]();
});

async function send(origin: string, id: string): Promise<{ status: number; outcome: Outcome }> {
  const response = await fetch(`${origin}${hookPath}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ id }),
  });
  return { status: response.status, outcome: (await response.json()) as Outcome };
}

const statusOf = async (gateway: GatewayProcess, path: string): Promise<number> =>
  (await fetch(`${gateway.origin}${path}`)).status;

describe("gateways with one role each", () => {
  it("serve that and health, and nothing else", async () => {
    expect((await send(hooks.origin, "1")).outcome.published).toBe(1);
    expect((await send(api.origin, "1")).status).toBe(404);
    expect((await send(delivery.origin, "1")).status).toBe(404);
    expect(await statusOf(hooks, "/v1/apps")).toBe(404);
    expect(await statusOf(delivery, "/v1/apps")).toBe(404);
    expect(await statusOf(api, "/v1/apps")).toBe(401);
    for (const gateway of [api, hooks, delivery]) {
      for (const path of ["/healthz", "/readyz", "/metrics"]) expect(await statusOf(gateway, path)).toBe(200);
    }
  });

  it("do together what one does: a definition comes into force, and its topic gets its group", async () => {
    const { group } = await api.api<{ group: string }>("POST", `/apps/${app.id}/events/subscribe`, {
      eventUid: "in:*",
      startAt: "earliest",
    });
    await api.api("PUT", `/apps/${app.id}/channels/${app.channels[0]?.id}`, {
      events: [
        { type: "made", idPath: "$.id" },
        { type: "copied", idPath: "$.id" },
      ],
    });
    const groups = async () => {
      const topics = await api.api<{ type: string; groups: { name: string }[] }[]>(
        "GET",
        `/apps/${app.id}/topics`,
      );
      return topics.find(({ type }) => type === "copied")?.groups.map(({ name }) => name);
    };
    await until(async () => (await groups())?.includes(group) === true);
    let tries = 0;
    await until(async () => (await send(hooks.origin, `both-${++tries}`)).outcome.published === 2);
  });
});

describe("a gateway that is told to stop", () => {
  it("drains under load: what it acknowledged is on the stream, and nobody inside is turned away", async () => {
    const gateway = await startWith("hooks");
    const acknowledged: string[] = [];
    const statuses = new Set<number>();
    let topic = "";
    const sender = async (name: number): Promise<void> => {
      for (let i = 0; ; i++) {
        // Refused or closed: it has gone.
        const sent = await send(gateway.origin, `${name}-${i}`).catch(() => undefined);
        if (sent === undefined) return;
        statuses.add(sent.status);
        if (sent.status !== 200) continue;
        const [event] = sent.outcome.events;
        topic = event?.topic ?? topic;
        acknowledged.push(event?.entryId ?? "none");
      }
    };
    const senders = Array.from({ length: 16 }, (_, name) => sender(name));
    await until(() => acknowledged.length > 500);
    gateway.kill("SIGTERM");
    expect(await gateway.exited).toBe(0);
    await Promise.all(senders);
    expect([...statuses]).toEqual([200]);
    const kept = new Set((await stores.client.xrange(topic, "-", "+")).map(([entryId]) => entryId));
    expect(acknowledged.filter((entryId) => !kept.has(entryId))).toEqual([]);
  });

  it("waits for who is inside, and is cut by a second signal", async () => {
    const gateway = await startWith("hooks");
    const { port } = new URL(gateway.origin);
    const slow = connect(Number(port), "127.0.0.1");
    slow.on("error", () => {});
    await once(slow, "connect");
    slow.write(`POST ${hookPath} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{`);
    // Connections are taken in their order: when this one is answered, the slow one is inside.
    await statusOf(gateway, "/readyz");
    gateway.kill("SIGTERM");
    await until(() => gateway.output().includes('"stopping"'));
    const again = setInterval(() => gateway.kill("SIGTERM"), 100);
    expect(await gateway.exited).toBe(143);
    clearInterval(again);
    slow.destroy();
  });
});
