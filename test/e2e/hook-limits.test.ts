import { createHmac } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type InstalledApp, installApp } from "../support/channels.ts";
import type { TestGateway } from "../support/gateway.ts";
import { API_KEY, callApi } from "../support/gateway-process.ts";
import { givenGateway } from "../support/given-gateway.ts";

const ORGANIZATION_RATE = 20;
const CHANNEL_RATE = 3;
const SECRET = "a secret of this test";

const gateway = givenGateway({
  INLET_HOOK_REQUESTS_PER_SECOND: String(ORGANIZATION_RATE),
  INLET_TRUST_PROXY: "127.0.0.0/8",
});
/** The clock of the gateway's rate limits. It only moves when a test moves it. */
let nowMs = performance.now();
/** The API key of an organization other than the operator's. */
let tenant: string;
beforeAll(async () => {
  const made = await gateway.api<{ apiKey: { key: string } }>("POST", "/organizations", { name: "tenant" });
  tenant = made.apiKey.key;
  vi.spyOn(performance, "now").mockImplementation(() => nowMs);
});
afterAll(() => vi.restoreAllMocks());

const verification = { scheme: "hmac", name: "x-signature" };

/** Installs an app of the tenant with one signed channel per config. All rate limit buckets are full afterwards. */
const install = (...configs: object[]): Promise<InstalledApp> => installFor(tenant, configs);

async function installFor(key: string, configs: readonly object[]): Promise<InstalledApp> {
  const api: TestGateway["api"] = (method, path, body) => callApi(gateway.origin, method, path, body, key);
  const app = await installApp(
    { api },
    configs.map((config, i) => ({
      uid: `c${i}`,
      kind: "webhook",
      config: { verification, ...config },
      events: [{ type: "e" }],
    })),
  );
  for (const { id } of app.channels) {
    await api("PUT", `/apps/${app.id}/channels/${id}`, { config: { secrets: [{ value: SECRET }] } });
  }
  nowMs += 10_000;
  return app;
}

const urlOf = ({ channels }: InstalledApp, at = 0): string => channels[at]?.url ?? "";

let bodies = 0;
const deliver = (url: string, address: string, secret = SECRET): Promise<Response> =>
  deliverBody(url, address, { n: bodies++ }, secret);

/** Sends a delivery whose sender has this address, through a proxy on this machine. */
function deliverBody(url: string, address: string, value: unknown, secret = SECRET): Promise<Response> {
  const body = JSON.stringify(value);
  const signature = createHmac("sha256", secret).update(body).digest("hex");
  return fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", "x-signature": signature, "x-forwarded-for": address },
    body,
  });
}

const many = (count: number, deliverOne: (i: number) => Promise<Response>): Promise<Response[]> =>
  Promise.all(Array.from({ length: count }, (_, i) => deliverOne(i)));

const statusesOf = (answers: readonly Response[], status: number): Response[] =>
  answers.filter((answer) => answer.status === status);

describe("rate limiting of webhook deliveries", () => {
  it("rejects a sender above the channel's rate before verifying its deliveries, and does not affect other senders", async () => {
    const url = urlOf(await install({ limits: { requestsPerSecond: CHANNEL_RATE } }));
    const forged = await many(10, () => deliver(url, "192.0.2.1", "another secret"));
    const verified = statusesOf(forged, 401);
    const refused = statusesOf(forged, 429);
    expect([verified.length, refused.length]).toEqual([CHANNEL_RATE, 10 - CHANNEL_RATE]);
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
    expect(verified[0]?.headers.has("ratelimit-limit")).toBe(false);
    nowMs += 1_000;
    expect((await deliver(url, "192.0.2.1")).status).toBe(200);
  });

  it("applies a channel's rate to all of its senders together, and publishes no event above that rate", async () => {
    const app = await install({ limits: { requestsPerSecond: CHANNEL_RATE } });
    const answers = await many(10, (i) => deliver(urlOf(app), `198.51.100.${i}`));
    expect(statusesOf(answers, 200)).toHaveLength(CHANNEL_RATE);
    expect(statusesOf(answers, 429)).toHaveLength(10 - CHANNEL_RATE);
    expect(await gateway.stores.client.xlen(app.topicOf("c0", "e"))).toBe(CHANNEL_RATE);
    nowMs += 1_000;
    const later = await many(10, (i) => deliver(urlOf(app), `198.51.100.${i}`));
    expect(statusesOf(later, 200)).toHaveLength(CHANNEL_RATE);
  });

  it("applies an organization's rate to all of its channels together", async () => {
    const app = await install({}, {});
    const answers = await many(30, (i) => deliver(urlOf(app, i % 2), `203.0.113.${i}`));
    expect(statusesOf(answers, 200)).toHaveLength(ORGANIZATION_RATE);
    const [refused] = statusesOf(answers, 429);
    expect(refused?.headers.get("ratelimit-limit")).toBe(String(ORGANIZATION_RATE));
  });

  it("counts the items of a delivery, so that the deliveries after an oversized one get 429 until the excess has drained", async () => {
    const app = await install({ itemsPath: "$[*]" }, {});
    const items = Array.from({ length: 3 * ORGANIZATION_RATE }, (_, n) => ({ n }));
    const first = await deliverBody(urlOf(app), "203.0.113.1", items);
    expect(first.status).toBe(200);
    expect(await first.json()).toMatchObject({ published: items.length });
    const refused = await deliver(urlOf(app, 1), "203.0.113.2");
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "3"]);
    nowMs += 2_000;
    expect((await deliver(urlOf(app, 1), "203.0.113.2")).status).toBe(429);
    nowMs += 1_000;
    expect((await deliverBody(urlOf(app), "203.0.113.1", items)).status).toBe(200);
  });

  it("applies no organization rate to the operator's own organization", async () => {
    const app = await installFor(API_KEY, [{}, {}]);
    const answers = await many(30, (i) => deliver(urlOf(app, i % 2), `203.0.113.${i}`));
    expect(statusesOf(answers, 200)).toHaveLength(30);
  });

  it("rejects deliveries without reading their body once the organization has used up its rate", async () => {
    const app = await install({});
    // An unverified delivery does not use up the organization's rate, because its sender is unknown.
    expect((await deliver(urlOf(app), "203.0.113.1", "another secret")).status).toBe(401);
    await many(30, (i) => deliver(urlOf(app), `203.0.113.${i}`));
    expect((await deliver(urlOf(app), "203.0.113.99", "another secret")).status).toBe(429);
    const socket = connect(Number(new URL(gateway.origin).port), "127.0.0.1");
    const { pathname } = new URL(urlOf(app));
    socket.write(`POST ${pathname} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{`);
    const [answer] = await once(socket, "data");
    expect(String(answer)).toMatch(/^HTTP\/1\.1 429 /);
    socket.destroy();
    nowMs += 1_000;
    expect((await deliver(urlOf(app), "203.0.113.99", "another secret")).status).toBe(401);
  });
});
