import { createHmac } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { type SharedStores, startSharedStores } from "../support/stores.ts";

const ORGANIZATION_RATE = 20;
const CHANNEL_RATE = 3;
const SECRET = "a secret of this test";

let stores: SharedStores;
let gateway: GatewayProcess;
beforeAll(async () => {
  stores = await startSharedStores();
  gateway = await startGatewayProcess({
    ...stores.env,
    INLET_HOOK_REQUESTS_PER_SECOND: String(ORGANIZATION_RATE),
    INLET_TRUST_PROXY: "127.0.0.0/8",
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await stores[Symbol.asyncDispose]();
});

interface InstalledApp {
  readonly organizationId: string;
  readonly id: string;
  readonly channels: readonly { readonly id: string; readonly url: string }[];
}

const verification = { scheme: "hmac", name: "x-signature" };

/** An app with channels of these settings, each signed for. */
async function install(...configs: object[]): Promise<InstalledApp> {
  const blueprint = await gateway.api<{ id: string }>("POST", "/blueprints", {
    title: "limits",
    channels: configs.map((config, i) => ({
      uid: `c${i}`,
      kind: "webhook",
      config: { verification, ...config },
      events: [{ type: "e" }],
    })),
  });
  const app = await gateway.api<InstalledApp>("POST", "/apps/install", { blueprintId: blueprint.id });
  for (const { id } of app.channels) {
    await gateway.api("PUT", `/apps/${app.id}/channels/${id}`, { config: { secrets: [{ value: SECRET }] } });
  }
  return app;
}

let bodies = 0;
/** A delivery from that address, by a proxy on this machine. */
function deliver(url: string, address: string, secret = SECRET): Promise<Response> {
  const body = JSON.stringify({ n: bodies++ });
  const signature = createHmac("sha256", secret).update(body).digest("hex");
  return fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", "x-signature": signature, "x-forwarded-for": address },
    body,
  });
}

const statusesOf = (answers: readonly Response[], status: number): Response[] =>
  answers.filter((answer) => answer.status === status);

/** As many as a bucket lets pass in that time. */
const atMost = (rate: number, sinceMs: number): number =>
  rate + Math.ceil(((performance.now() - sinceMs) * rate) / 1_000);

describe("hooks", () => {
  it("refuse who sends too much before they look at what it is, and nobody else", async () => {
    const { channels } = await install({ limits: { requestsPerSecond: CHANNEL_RATE } });
    const url = channels[0]?.url ?? "";
    const startedAtMs = performance.now();
    const forged = await Promise.all(
      Array.from({ length: 30 }, () => deliver(url, "192.0.2.1", "another secret")),
    );
    const looked = statusesOf(forged, 401);
    expect(looked.length).toBeGreaterThanOrEqual(CHANNEL_RATE);
    expect(looked.length).toBeLessThanOrEqual(atMost(CHANNEL_RATE, startedAtMs));
    const refused = statusesOf(forged, 429);
    expect(looked.length + refused.length).toBe(forged.length);
    const [first] = refused;
    expect(await first?.json()).toEqual({ code: "rate_limited", message: expect.any(String) });
    expect(Object.fromEntries(first?.headers ?? [])).toMatchObject({
      "retry-after": "1",
      "ratelimit-limit": String(CHANNEL_RATE),
      "ratelimit-remaining": "0",
      "ratelimit-reset": "1",
    });
    const others = await deliver(url, "192.0.2.2");
    expect(others.status).toBe(200);
    expect(others.headers.has("ratelimit-limit")).toBe(false);
    expect(looked[0]?.headers.has("ratelimit-limit")).toBe(false);
  });

  it("take no more for a channel than it says, from however many senders, and publish none of the rest", async () => {
    const { channels, organizationId, id } = await install({ limits: { requestsPerSecond: CHANNEL_RATE } });
    const startedAtMs = performance.now();
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, i) => deliver(channels[0]?.url ?? "", `198.51.100.${i}`)),
    );
    const taken = statusesOf(answers, 200).length;
    expect(taken).toBeGreaterThanOrEqual(CHANNEL_RATE);
    expect(taken).toBeLessThanOrEqual(atMost(CHANNEL_RATE, startedAtMs));
    expect(statusesOf(answers, 429)).toHaveLength(answers.length - taken);
    const topic = `events.${organizationId}.apps.app.event_received.${id}.c0.e`;
    expect(await stores.client.xlen(topic)).toBe(taken);
  });

  it("take no more for an organization than is set, over all of its channels", async () => {
    const { channels } = await install({}, {});
    const startedAtMs = performance.now();
    const answers = await Promise.all(
      Array.from({ length: 80 }, (_, i) => deliver(channels[i % 2]?.url ?? "", `203.0.113.${i}`)),
    );
    const taken = statusesOf(answers, 200).length;
    expect(taken).toBeGreaterThan(0);
    expect(taken).toBeLessThanOrEqual(atMost(ORGANIZATION_RATE, startedAtMs));
    const [refused] = statusesOf(answers, 429);
    expect(refused?.headers.get("ratelimit-limit")).toBe(String(ORGANIZATION_RATE));
  });
});
