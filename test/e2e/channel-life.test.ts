import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Outcome } from "../../src/event/outcome.ts";
import { createTestStores, startTestGateway, type TestGateway, type TestStores } from "../support/gateway.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { until } from "../support/until.ts";

interface Channel {
  readonly id: string;
  readonly uid: string;
  readonly appId: string;
  readonly organizationId: string;
  readonly url: string;
  readonly state: string;
}

let stores: TestStores;
let one: TestGateway;
let other: TestGateway;
let blueprintId: string;
beforeAll(async () => {
  stores = await createTestStores();
  [one, other] = await Promise.all([startTestGateway(stores.env), startTestGateway(stores.env)]);
  const channels = [{ uid: "in", kind: "webhook", events: [{ type: "tick", idPath: "$.n" }] }];
  const blueprint = await one.api<{ id: string }>("POST", "/blueprints", { title: "ticks", channels });
  blueprintId = blueprint.id;
});
afterAll(async () => {
  await Promise.all([one, other].map((gateway) => gateway?.[Symbol.asyncDispose]()));
  await stores[Symbol.asyncDispose]();
});

/** In this process or in one of its own. */
type Addressed = Pick<TestGateway, "api" | "origin">;

async function install(): Promise<Channel> {
  const app = await one.api<{ channels: [Channel] }>("POST", "/apps/install", { blueprintId });
  return app.channels[0];
}

const act = (gateway: Addressed, { appId, id }: Channel, what: string, body: object = {}) =>
  gateway.api<Channel>("POST", `/apps/${appId}/channels/${id}/${what}`, body);

async function post(gateway: Addressed, { id }: Pick<Channel, "id">, n: number): Promise<Response> {
  const headers = { "content-type": "application/json" };
  return fetch(`${gateway.origin}/hooks/${id}`, { method: "POST", headers, body: JSON.stringify({ n }) });
}

async function send(gateway: Addressed, channel: Channel, n: number): Promise<Outcome> {
  const response = await post(gateway, channel, n);
  expect(response.status).toBe(200);
  return (await response.json()) as Outcome;
}

const reasons = ({ quarantine }: Outcome) => quarantine.map(({ reason }) => reason);

async function onTopic({ appId, organizationId, uid }: Channel): Promise<readonly number[]> {
  const topic = `events.${organizationId}.apps.app.event_received.${appId}.${uid}.tick`;
  const entries = await stores.client.xrange(topic, "-", "+");
  return entries.map(([, fields]) => JSON.parse(fields[fields.indexOf("data") + 1] ?? "").n);
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);

describe("pausing a channel on one gateway", () => {
  it("is in force on the other within two seconds, and nothing overtakes when it is resumed", async () => {
    const channel = await install();
    expect((await send(other, channel, -1)).published).toBe(1);
    await act(one, channel, "pause");
    let n = -1;
    await until(async () => reasons(await send(other, channel, --n)).includes("paused"), {
      everyMs: 50,
    });
    const before = (await onTopic(channel)).length;
    for (const i of range(0, 200)) await send(i % 2 === 0 ? one : other, channel, i);
    expect(await onTopic(channel)).toHaveLength(before);

    await act(other, channel, "resume");
    let next = 200;
    let passed = 0;
    await until(async () => {
      const outcome = await send(next % 2 === 0 ? one : other, channel, next++);
      passed = outcome.published === 1 ? passed + 1 : 0;
      return passed >= 20;
    });
    const order = (await onTopic(channel)).filter((i) => i >= 0);
    expect(order).toEqual(range(0, next));
  });

  it("loses nothing when the gateway that brings the deliveries through is killed midway", async () => {
    const channel = await install();
    const dying = await startGatewayProcess(stores.env);
    await act(dying, channel, "pause");
    for (let n = 0; n < 600; n += 20) {
      // Both know of the pause: else some would pass.
      await Promise.all(range(n, n + 20).map((i) => send(dying, channel, i)));
    }
    await act(dying, channel, "resume");
    await until(async () => (await onTopic(channel)).length > 0, { everyMs: 1 });
    dying.kill("SIGKILL");
    await dying.exited;
    await until(async () => (await onTopic(channel)).length >= 600, { everyMs: 50 });
    expect([...(await onTopic(channel))].sort((a, b) => a - b)).toEqual(range(0, 600));
  });
});

describe("giving a channel a new address", () => {
  it("lets the old one go on for its grace, then ends it everywhere; ids are remembered throughout", async () => {
    const first = await install();
    expect((await send(other, first, 1)).published).toBe(1);
    const second = await act(one, first, "rotate", { graceSeconds: 3 });
    const endsAtMs = Date.now() + 3_000;
    expect(second).toMatchObject({ uid: "in", appId: first.appId, state: "active" });
    expect(second.id).not.toBe(first.id);
    expect(second.url).toContain(second.id);
    const third = await act(other, second, "rotate");
    for (const channel of [first, second, third]) {
      for (const gateway of [one, other]) expect((await send(gateway, channel, 1)).duplicates).toBe(1);
    }
    await until(async () => (await post(one, first, 1)).status === 404, { everyMs: 50 });
    expect(Date.now()).toBeGreaterThanOrEqual(endsAtMs - 100);
    await until(async () => (await post(other, first, 1)).status === 404, { everyMs: 20 });
    expect((await send(one, second, 1)).duplicates).toBe(1);
    expect((await send(other, third, 2)).published).toBe(1);
    expect(await onTopic(first)).toEqual([1, 2]);
    await expect(one.api("GET", `/apps/${first.appId}/channels/${second.id}`)).rejects.toThrow("404");
  });

  it("without grace ends all of before within two seconds, on the gateway that was asked at once", async () => {
    const first = await install();
    const second = await act(one, first, "rotate");
    for (const gateway of [one, other]) await send(gateway, first, 1);
    const third = await act(one, second, "rotate", { graceSeconds: 0 });
    for (const channel of [first, second]) expect((await post(one, channel, 1)).status).toBe(404);
    for (const channel of [first, second]) {
      await until(async () => (await post(other, channel, 1)).status === 404);
    }
    expect((await send(other, third, 1)).duplicates).toBe(1);
  });
});
