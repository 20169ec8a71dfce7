import { Cluster } from "ioredis";
import { expect } from "vitest";
import { compareEntryIds } from "../../src/bus/entry-id.ts";
import { jobsPrefix } from "../../src/bus/keys.ts";
import type { PendingRetry } from "../../src/event/handler.ts";
import type { HandlersTiming } from "../../src/handlers/handlers.ts";
import { channelOf, type InstalledApp, installApp } from "../support/channels.ts";
import { createTestStores, startTestGateway, type TestGateway, type TestStores } from "../support/gateway.ts";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { type HandlerServer, startHandlerServer } from "../support/handler-server.ts";
import { until } from "../support/until.ts";

const TIMING: HandlersTiming = {
  firstRetryMs: 50,
  mostRetryMs: 200,
  giveUpAfterMs: 86_400_000,
  breakerMs: 50,
  deadAfterMs: 1_000,
  jobLockMs: 1_000,
  sweepEveryMs: 1_000,
};

/** The stores and the handler server, which outlive the killed gateways. */
export interface KillSite extends AsyncDisposable {
  readonly stores: TestStores;
  readonly handler: HandlerServer;
  /** Starts a gateway to be killed. */
  readonly startVictim: () => Promise<GatewayProcess>;
  /** Starts a gateway that takes over the remaining work. */
  readonly startSurvivor: () => Promise<TestGateway>;
}

export async function openKillSite(): Promise<KillSite> {
  await using opening = new AsyncDisposableStack();
  const stores = opening.use(await createTestStores());
  const handler = opening.use(await startHandlerServer());
  const env = { ...stores.env, INLET_ALLOW_NETWORKS: "127.0.0.0/8" };
  const opened = opening.move();
  return {
    stores,
    handler,
    startVictim: () => startGatewayProcess(env, { handlersTiming: TIMING }),
    startSurvivor: () => startTestGateway(env, { handlersTiming: TIMING }),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

async function kill(gateway: GatewayProcess): Promise<void> {
  gateway.kill("SIGKILL");
  await gateway.exited;
}

async function send({ origin }: Pick<TestGateway, "origin">, app: InstalledApp, body: object): Promise<void> {
  const response = await fetch(`${origin}/hooks/${channelOf(app).id}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  expect(response.status).toBe(200);
}

interface Subscription {
  readonly id: string;
  readonly topics: readonly string[];
  readonly path: string;
}

/** The first delivery of every third event fails, in a different way for each subscription. */
const FAILURES = { "/hang": "hang", "/cut": "cut", "/500": { status: 500 } } as const;
const EVENTS_PER_ROUND = 30;

const idOf = (body: string): string => JSON.parse(body).id;

/**
 * Kills a gateway in each round during deliveries to handlers that hang, disconnect or respond 500. Then a last gateway finishes the
 * work.
 * Checks that no event is acknowledged before its handler took it, that every event is handled, and that ordered events stay in order.
 */
export async function killWhileHandling(site: KillSite, rounds: number): Promise<void> {
  const { handler } = site;
  let app: InstalledApp | undefined;
  const subscriptions: Subscription[] = [];

  async function setUp({ api }: GatewayProcess): Promise<InstalledApp> {
    const events = ["a", "b"].map((type) => ({ type, typePath: "$.type", idPath: "$.id" }));
    const made = await installApp({ api }, [{ uid: "main", kind: "webhook", events }]);
    const subscribe = async (path: string, settings: object): Promise<void> => {
      const body = { eventUid: "*", handler: { url: handler.urlOf(path), timeoutMs: 500, ...settings } };
      const { id, topics } = await api<Subscription>("POST", `/apps/${made.id}/events/subscribe`, body);
      subscriptions.push({ id, topics, path });
    };
    for (const [path, failure] of Object.entries(FAILURES)) {
      handler.answers.set(path, ({ body }, times) =>
        times === 1 && Number(idOf(body)) % 3 === 0 ? failure : { status: 200 },
      );
      await subscribe(path, { concurrency: 4 });
    }
    handler.answers.set("/ordered", ({ body }, times) =>
      times === 1 && Number(idOf(body)) % 10 === 3 ? "cut" : { status: 200 },
    );
    await subscribe("/ordered", { ordered: true });
    return made;
  }

  for (let round = 0; round < rounds; round++) {
    await using victim = await site.startVictim();
    app ??= await setUp(victim);
    const before = handler.received.length;
    for (let n = round * EVENTS_PER_ROUND; n < (round + 1) * EVENTS_PER_ROUND; n++) {
      await send(victim, app, { type: n % 2 ? "a" : "b", id: String(n) });
    }
    await until(() => handler.received.length > before + EVENTS_PER_ROUND);
    await kill(victim);
    for (const subscription of subscriptions) expect(await lostOf(site, subscription)).toEqual([]);
  }

  await using _survivor = await site.startSurvivor();
  const handled = (path: string): Set<string> => new Set(handler.taken(path).map(({ body }) => idOf(body)));
  await until(() => subscriptions.every(({ path }) => handled(path).size === rounds * EVENTS_PER_ROUND));
  await until(async () => (await Promise.all(subscriptions.map((one) => isDone(site, one)))).every(Boolean), {
    everyMs: 50,
  });
  for (const subscription of subscriptions) expect(await lostOf(site, subscription)).toEqual([]);
  for (const type of ["a", "b"]) {
    const taken = handler.taken("/ordered").filter(({ headers }) => headers["ce-type"] === type);
    const first = [...new Set(taken.map(({ body }) => Number(idOf(body))))];
    expect(first).toEqual(first.toSorted((a, b) => a - b));
  }
}

/** Returns whether the subscription has no pending entry and no scheduled retry. */
async function isDone({ stores }: KillSite, { id, topics }: Subscription): Promise<boolean> {
  for (const topic of topics) if (Number((await stores.client.xpending(topic, id))[0]) > 0) return false;
  return (await jobsOf(stores, id)).size === 0;
}

/** Returns entries that no gateway would deliver any more although the handler has not taken them. */
async function lostOf({ stores, handler }: KillSite, { id, topics, path }: Subscription): Promise<string[]> {
  const { client } = stores;
  const taken = handler.taken(path).map(({ headers }) => headers);
  const jobs = await jobsOf(stores, id);
  const lost: string[] = [];
  for (const topic of topics) {
    const [groups, entries, pending] = await Promise.all([
      client.xinfo("GROUPS", topic) as Promise<unknown[][]>,
      client.xrange(topic, "-", "+"),
      client.xpending(topic, id, "-", "+", 10_000) as Promise<[string][]>,
    ]);
    const group = groups.find((fields) => fields.includes(id)) ?? [];
    const last = String(group[group.indexOf("last-delivered-id") + 1]);
    const held = new Set([...pending.map(([entryId]) => entryId), ...(jobs.get(topic) ?? [])]);
    for (const [entryId] of entries) {
      const isTaken = taken.some(
        // Entries of both types can have the same id, so the type is compared too.
        (one) => one["webhook-id"]?.includes(`_${entryId}_`) && topic.endsWith(`.${one["ce-type"]}`),
      );
      if (compareEntryIds(entryId, last) <= 0 && !held.has(entryId) && !isTaken) lost.push(entryId);
    }
  }
  return lost;
}

/** Returns the subscription's entries that are scheduled for a retry, by topic. */
async function jobsOf({ client }: TestStores, subscriptionId: string): Promise<Map<string, string[]>> {
  const nodes = client instanceof Cluster ? client.nodes("master") : [client];
  const keys = (
    await Promise.all(nodes.map((node) => node.keys(`${jobsPrefix("handlers")}:handlers:*`)))
  ).flat();
  const jobs = new Map<string, string[]>();
  for (const key of keys) {
    const text = await client.hget(key, "data").catch(() => null);
    const job = text === null ? undefined : (JSON.parse(text) as PendingRetry);
    if (job?.subscriptionId === subscriptionId)
      jobs.set(job.topic, [...(jobs.get(job.topic) ?? []), job.entryId]);
  }
  return jobs;
}

const QUARANTINED = 100;

/** Kills gateways during redrives. Each item must be in quarantine or on its topic, and in the end on its topic exactly once. */
export async function killWhileRedriving(site: KillSite, kills: number): Promise<void> {
  const { client } = site.stores;
  await using survivor = await site.startSurvivor();
  const app = await installApp(survivor, [
    { uid: "main", kind: "webhook", events: [{ type: "e", idPath: "$.missing" }] },
  ]);
  for (let n = 0; n < QUARANTINED; n++) await send(survivor, app, { id: String(n) });
  const channel = `/apps/${app.id}/channels/${channelOf(app).id}`;
  await survivor.api("PUT", channel, { events: [{ type: "e", idPath: "$.id" }] });
  const topic = app.topicOf("main", "e");
  const left = async (): Promise<number> =>
    (await survivor.api<object[]>("GET", `/apps/${app.id}/quarantine?limit=200`)).length;
  const redrive = ({ api }: Pick<TestGateway, "api">) =>
    api("POST", `/apps/${app.id}/quarantine/redrive`, { limit: 40 });
  expect(await left()).toBe(QUARANTINED);
  for (let n = 0; n < kills; n++) {
    const before = await client.xlen(topic);
    await using victim = await site.startVictim();
    const redriving = redrive(victim).catch(() => "cut off");
    await until(async () => (await client.xlen(topic)) > before + 3, { everyMs: 1 });
    await kill(victim);
    await redriving;
    const seen = (await left()) + (await client.xlen(topic));
    // In a Cluster, an item leaves quarantine after the write that publishes it, so it may briefly be in both.
    if (client instanceof Cluster) expect(seen).toBeGreaterThanOrEqual(QUARANTINED);
    else expect(seen).toBe(QUARANTINED);
  }
  while ((await left()) > 0) await redrive(survivor);
  const ids = (await client.xrange(topic, "-", "+")).map(([, fields]) => fields[fields.indexOf("id") + 1]);
  expect([ids.length, new Set(ids).size]).toEqual([QUARANTINED, QUARANTINED]);
}
