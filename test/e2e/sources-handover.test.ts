import { once } from "node:events";
import { connect } from "node:net";
import { beforeAll, expect, it } from "vitest";
import { type InstalledApp, installApp } from "../support/channels.ts";
import { fieldsOn, type TestGateway } from "../support/gateway.ts";
import { givenGateway } from "../support/given-gateway.ts";
import { opened } from "../support/opened.ts";
import { startStreamServer } from "../support/stream-server.ts";
import { until } from "../support/until.ts";

const CHANNELS = Array.from({ length: 8 }, (_, i) => `feed-${i}`);

const upstream = opened(startStreamServer);
let app: InstalledApp;

/** No lease expires during this test, so shards change owners only when a gateway releases them. */
const LEASE = { ttlMs: 3_600_000 };

const env = { INLET_ALLOW_NETWORKS: "127.0.0.0/8" };
const leaving = givenGateway(env, { sourcesTiming: LEASE });
const { stores } = leaving;
const staying = givenGateway(env, { sourcesTiming: LEASE, stores });

beforeAll(async () => {
  app = await installApp(leaving, [
    ...CHANNELS.map((uid) => ({
      uid,
      kind: "sse",
      events: [{ type: "tick" }],
      config: { url: upstream.url, run: "always", reconnect: { initialMs: 100 } },
    })),
    { uid: "hook", kind: "webhook", events: [{ type: "tick" }] },
  ]);
});

/** Returns the numbers on each channel's topic, in entry order. */
async function ledger(): Promise<readonly (readonly number[])[]> {
  const data = await Promise.all(CHANNELS.map((uid) => fieldsOn(stores, app.topicOf(uid, "tick"), "data")));
  return data.map((texts) => texts.map((text) => JSON.parse(text).n as number));
}

const shardsOf = async ({ origin }: TestGateway): Promise<number> => {
  const body = (await (await fetch(`${origin}/readyz`)).json()) as {
    readonly checks: { readonly sources?: { readonly facts: { readonly shards: number } } };
  };
  return body.checks.sources?.facts.shards ?? 0;
};

async function expectWhole(made: number): Promise<void> {
  const whole = Array.from({ length: made }, (_, n) => n);
  await until(async () => (await ledger()).every((numbers) => numbers.length >= made));
  for (const numbers of await ledger()) expect(numbers).toEqual(whole);
}

/** Opens a request that the gateway waits for until `leave` is called. */
async function enter({ origin }: TestGateway): Promise<{ readonly leave: () => void }> {
  const hook = app.channels.find(({ uid }) => uid === "hook");
  const socket = connect(Number(new URL(origin).port), "127.0.0.1");
  await once(socket, "connect");
  socket.write(`POST /hooks/${hook?.id} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{`);
  // The gateway accepts connections in order: once this request has its response, the other connection is accepted too.
  await fetch(`${origin}/healthz`);
  return { leave: () => socket.destroy() };
}

it("a stopping gateway hands its event streams over to another gateway immediately, and no event is lost or duplicated", async () => {
  await until(async () => (await Promise.all([leaving, staying].map(shardsOf))).join() === "128,128");
  await until(() => upstream.open() === CHANNELS.length);
  upstream.make(50);
  await expectWhole(50);
  const connectionsBefore = upstream.told.length;
  const { leave } = await enter(leaving);
  let hasStopped = false;
  const stopping = leaving[Symbol.asyncDispose]().then(() => {
    hasStopped = true;
  });
  upstream.make(50);
  // The remaining gateway takes all shards before the stopping one has ended, without waiting for a lease to expire.
  await until(async () => (await shardsOf(staying)) === 256);
  await until(() => upstream.open() === CHANNELS.length && upstream.told.length > connectionsBefore);
  await expectWhole(100);
  expect(hasStopped).toBe(false);
  leave();
  await stopping;
});
