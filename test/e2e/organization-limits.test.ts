import { beforeAll, describe, expect, it } from "vitest";
import type { OpenApi } from "../support/documented.ts";
import { API_KEY } from "../support/gateway-process.ts";
import { givenGateway } from "../support/given-gateway.ts";
import { until } from "../support/until.ts";

const gateway = givenGateway();

type Api = (method: string, path: string, body?: unknown) => Promise<{ status: number } & OpenApi>;

/** Calls the API with this key. Returns the status, `Retry-After` and the body's fields in one object. */
const as =
  (key: string): Api =>
  async (method, path, body) => {
    const response = await fetch(`${gateway.origin}/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const retryAfter = response.headers.get("retry-after");
    return { ...((await response.json()) as OpenApi), status: response.status, retryAfter };
  };

interface Tenant {
  readonly api: Api;
  readonly path: string;
  readonly appId: string;
  readonly send: () => Promise<Response>;
}

async function startTenant(name: string): Promise<Tenant> {
  const { id, apiKey } = await gateway.api<OpenApi>("POST", "/organizations", { name });
  const api = as(apiKey.key);
  const config = { onNoMatch: "quarantine" };
  const channel = { uid: "in", kind: "webhook", config, events: [{ type: "never", typePath: "$.none" }] };
  const blueprint = await api("POST", "/blueprints", { title: "x", channels: [channel] });
  const app = await api("POST", "/apps/install", { blueprintId: blueprint.id });
  const url: string = app.channels[0].url;
  let n = 0;
  const send = () =>
    fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ n: n++ }),
    });
  return { api, path: `/organizations/${id}/limits`, appId: app.id, send };
}

let small: Tenant;
let other: Tenant;
beforeAll(async () => {
  small = await startTenant("small");
  other = await startTenant("other");
});
const set = (limits: object) => gateway.api<OpenApi>("PUT", small.path, limits);

describe("the limits of an organization", () => {
  it("can be set by the operator and read by the organization, which can change only the `overLimit` setting", async () => {
    const first = await small.api("GET", small.path);
    expect(first).toMatchObject({
      status: 200,
      topicBytes: null,
      overLimit: "refuse",
      inForce: { rowsPerResource: 100_000, keyFetches: 16 },
    });
    for (const tenant of [small, other])
      expect(await tenant.api("PUT", small.path, { rowsPerResource: 9 })).toMatchObject({ status: 403 });
    expect(await small.api("PUT", small.path, { overLimit: "trim" })).toMatchObject({
      status: 200,
      overLimit: "trim",
    });
    for (const [method, body] of [
      ["GET", undefined],
      ["PUT", { overLimit: "trim" }],
    ] as const)
      expect(await other.api(method, small.path, body)).toMatchObject({ status: 404 });
    for (const wrong of [{ rowsPerResource: 0 }, { keyFetches: 1.5 }, { overLimit: null }, { unknown: 1 }])
      expect(await as(API_KEY)("PUT", small.path, wrong)).toMatchObject({ status: 400 });
    const [{ id: organizationId }] = await gateway.api<OpenApi>("GET", "/organizations");
    const own = await gateway.api<OpenApi>("GET", `/organizations/${organizationId}/limits`);
    expect(Object.values(own.inForce).every((limit) => limit === null)).toBe(true);
    expect(await small.api("GET", `/organizations/${organizationId}/limits`)).toMatchObject({ status: 404 });
    const changed = await set({ keyFetches: 3 });
    expect(changed).toMatchObject({ keyFetches: 3, overLimit: "trim", inForce: { keyFetches: 3 } });
    expect(await set({ keyFetches: null })).toMatchObject({ keyFetches: null, inForce: { keyFetches: 16 } });
    const entries = await gateway.api<OpenApi>("GET", "/audit?entity=organization&limit=200");
    expect(entries.at(-1)).toMatchObject({ action: "update", fields: ["limits.keyFetches"] });
  });

  it("on database rows apply without a restart, and end when they are removed", async () => {
    await set({ rowsPerResource: 1 });
    let refused: OpenApi;
    await until(async () => {
      refused = await small.api("POST", "/rooms", { title: "r" });
      return refused.status === 409;
    });
    expect(refused.message).toContain("rowsPerResource");
    expect(await other.api("POST", "/rooms", { title: "r" })).toMatchObject({ status: 200 });
    await set({ rowsPerResource: null });
    await until(async () => (await small.api("POST", "/rooms", { title: "r" })).status === 200);
  });

  it("on quarantine size make the gateway reject deliveries that would be quarantined, for this organization only", async () => {
    expect((await small.send()).status).toBe(200);
    await set({ quarantineBytes: 1 });
    await until(async () => (await small.send()).status === 503);
    expect((await other.send()).status).toBe(200);
    await set({ quarantineBytes: null });
    await until(async () => (await small.send()).status === 200);
  });

  it("on webhook deliveries make the gateway respond 429, for this organization only", async () => {
    await set({ hookRequestsPerSecond: 1 });
    await until(async () => {
      const answers = await Promise.all([small.send(), small.send(), small.send()]);
      return answers.some(({ status }) => status === 429);
    });
    expect((await other.send()).status).toBe(200);
    await set({ hookRequestsPerSecond: null });
  });

  it("on schema compilation make the API respond 429 with Retry-After, for this organization only", async () => {
    let n = 0;
    const create = (tenant: Tenant) => {
      const events = [{ type: "t", schema: { const: `${n++}` } }];
      const body = { uid: `c${n}`, kind: "webhook", events };
      return tenant.api("POST", `/apps/${tenant.appId}/channels`, body);
    };
    await set({ schemaCompileMsPerMinute: 1 });
    let refused: OpenApi;
    await until(async () => {
      refused = await create(small);
      return refused.status !== 200;
    });
    expect(refused).toMatchObject({ status: 429, code: "rate_limited" });
    expect(Number(refused.retryAfter)).toBeGreaterThan(0);
    expect(await create(other)).toMatchObject({ status: 200 });
  });
});
