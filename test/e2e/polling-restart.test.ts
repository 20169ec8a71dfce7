import { afterAll, beforeAll, expect, it } from "vitest";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { PollUpstream } from "../support/poll-upstream.ts";
import { type SharedStores, startSharedStores } from "../support/stores.ts";
import { until } from "../support/until.ts";

const PAGE_ROWS = 3;

let stores: SharedStores;
let upstream: PollUpstream;
let gateway: GatewayProcess;
let app: {
  readonly id: string;
  readonly organizationId: string;
  readonly channels: [{ readonly id: string }];
};

const start = () =>
  startGatewayProcess(
    { ...stores.env, INLET_ALLOW_NETWORKS: "127.0.0.0/8" },
    { sourcesTiming: { ttlMs: 1_000 } },
  );

beforeAll(async () => {
  [stores, upstream] = await Promise.all([startSharedStores(), PollUpstream.start()]);
  upstream.clear({ by: "at", paging: "cursorToken", pageSize: PAGE_ROWS });
  gateway = await start();
  const config = {
    request: { url: `${upstream.origin}/rows`, query: { since: "{{cursor}}" } },
    schedule: { intervalSeconds: 5 },
    discriminator: { by: "timestamp", path: "$.at" },
    pagination: { by: "cursorToken", path: "$.next", name: "token" },
    ...{ itemsPath: "$.rows", itemId: "$.id", startAt: "earliest", retry: { attempts: 0 } },
  };
  const blueprint = await gateway.api<{ id: string }>("POST", "/blueprints", {
    title: "Table",
    channels: [{ uid: "rows", kind: "polling", config, events: [{ type: "inserted" }] }],
  });
  app = await gateway.api("POST", "/apps/install", { blueprintId: blueprint.id });
});
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]();
  await upstream?.[Symbol.asyncDispose]();
  await stores?.[Symbol.asyncDispose]();
});

/** So many rows more, five to a time of theirs. */
function insert(count: number): void {
  for (let i = 0; i < count; i++) {
    if (upstream.rows.size % 5 === 0) upstream.nowMs += 1_000;
    upstream.insert();
  }
}

async function onTopic(): Promise<readonly string[]> {
  const topic = `events.${app.organizationId}.apps.app.event_received.${app.id}.rows.inserted`;
  const entries = await stores.client.xrange(topic, "-", "+");
  return entries.map(([, fields]) => fields[fields.indexOf("id") + 1] ?? "");
}

async function expectAll(): Promise<void> {
  const made = [...upstream.rows.keys()];
  await until(async () => (await onTopic()).length >= made.length, { everyMs: 20 });
  expect(await onTopic()).toEqual(made);
}

const source = (path = ""): string => `/apps/${app.id}/channels/${app.channels[0].id}/source${path}`;

it("is asked once a subscription covers it, and what is new is on its topic, once and in order", async () => {
  insert(20);
  expect(upstream.requests).toEqual([]);
  await gateway.api("POST", `/apps/${app.id}/events/subscribe`, { eventUid: "rows:*" });
  await expectAll();
  insert(3);
  await expectAll();
  await until(async () => {
    const { state } = await gateway.api<{ state: string }>("GET", source());
    return state === "waiting";
  });
});

it("goes on behind the last page that was published when its gateway is killed between two pages", async () => {
  insert(40);
  const before = (await onTopic()).length;
  const killed = Promise.withResolvers<void>();
  upstream.faults = [
    undefined,
    undefined,
    {
      kind: "do",
      change() {
        gateway.kill("SIGKILL");
        killed.resolve();
      },
    },
  ];
  await killed.promise;
  await gateway.exited;
  const published = (await onTopic()).length;
  expect(published).toBeGreaterThan(before);
  expect(published).toBeLessThan(upstream.rows.size);
  const asked = upstream.requests.length;
  gateway = await start();
  insert(1);
  await expectAll();
  const since = new URL(upstream.requests[asked]?.url ?? "").searchParams.get("since");
  const begins = [...upstream.rows.values()].findIndex(({ atMs }) => new Date(atMs).toISOString() === since);
  expect(begins).toBeGreaterThanOrEqual(before - 5);
  expect(begins).toBeLessThan(published);
});
