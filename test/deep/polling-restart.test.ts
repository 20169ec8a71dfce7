import { Cluster } from "ioredis";
import { afterAll, beforeAll, expect, it } from "vitest";
import { slotsKey } from "../../src/bus/keys.ts";
import { channelOf, type InstalledApp, installApp } from "../support/channels.ts";
import { createTestStores, fieldsOn, startTestGateway, type TestGateway } from "../support/gateway.ts";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { opened } from "../support/opened.ts";
import { PollUpstream } from "../support/poll-upstream.ts";
import { until } from "../support/until.ts";

const PAGE_ROWS = 3;

const stores = opened(createTestStores);
const upstream = opened(() => PollUpstream.start());
let killed: GatewayProcess;
let next: TestGateway;
let app: InstalledApp;

const env = () => ({ ...stores.env, INLET_ALLOW_NETWORKS: "127.0.0.0/8" });

beforeAll(async () => {
  upstream.clear({ by: "at", paging: "cursorToken", pageSize: PAGE_ROWS });
  killed = await startGatewayProcess(env());
  const config = {
    request: { url: `${upstream.origin}/rows`, query: { since: "{{cursor}}" } },
    schedule: { intervalSeconds: 5 },
    discriminator: { by: "timestamp", path: "$.at" },
    pagination: { by: "cursorToken", path: "$.next", name: "token" },
    itemsPath: "$.rows",
    itemId: "$.id",
    startAt: "earliest",
    retry: { attempts: 0 },
  };
  app = await installApp(killed, [{ uid: "rows", kind: "polling", config, events: [{ type: "inserted" }] }]);
});
afterAll(async () => {
  await next?.[Symbol.asyncDispose]();
  await killed?.[Symbol.asyncDispose]();
});

/** Inserts rows, five of which share each timestamp. */
function insert(count: number): void {
  for (let i = 0; i < count; i++) {
    if (upstream.rows.size % 5 === 0) upstream.nowMs += 1_000;
    upstream.insert();
  }
}

const onTopic = () => fieldsOn(stores, app.topicOf("rows", "inserted"), "id");

async function expectAll(): Promise<void> {
  const made = [...upstream.rows.keys()];
  await until(async () => (await onTopic()).length >= made.length, { everyMs: 20 });
  expect(await onTopic()).toEqual(made);
}

/** Simulates the expiry of a dead worker's slots. */
async function expireSlots(): Promise<void> {
  const { client } = stores;
  for (const node of client instanceof Cluster ? client.nodes("master") : [client]) {
    const keys = await node.keys(slotsKey("*"));
    if (keys.length > 0) await node.del(keys);
  }
}

const source = (path = ""): string => `/apps/${app.id}/channels/${channelOf(app).id}/source${path}`;

it("polling starts once an event subscription exists, and publishes new rows once and in order", async () => {
  insert(20);
  expect(upstream.requests).toEqual([]);
  await killed.api("POST", `/apps/${app.id}/events/subscribe`, { eventUid: "rows:*" });
  await expectAll();
  insert(3);
  await expectAll();
  await until(async () => {
    const { state } = await killed.api<{ state: string }>("GET", source());
    return state === "waiting";
  });
});

it("a poll continues after the last published page if its gateway was killed between two pages", async () => {
  insert(40);
  const before = (await onTopic()).length;
  const cut = Promise.withResolvers<void>();
  upstream.faults = [
    undefined,
    undefined,
    {
      kind: "do",
      change() {
        killed.kill("SIGKILL");
        cut.resolve();
      },
    },
  ];
  await cut.promise;
  await killed.exited;
  const published = (await onTopic()).length;
  expect(published).toBeGreaterThan(before);
  expect(published).toBeLessThan(upstream.rows.size);
  const requestsBefore = upstream.requests.length;
  await expireSlots();
  next = await startTestGateway(env());
  insert(1);
  await expectAll();
  const since = new URL(upstream.requests[requestsBefore]?.url ?? "").searchParams.get("since");
  const begins = [...upstream.rows.values()].findIndex(({ atMs }) => new Date(atMs).toISOString() === since);
  expect(begins).toBeGreaterThanOrEqual(before - 5);
  expect(begins).toBeLessThan(published);
});
