import { afterAll, beforeAll, expect, it } from "vitest";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { type SharedStores, startSharedStores } from "../support/stores.ts";
import { type StreamServer, startStreamServer } from "../support/stream-server.ts";
import { until } from "../support/until.ts";

const CHANNELS = Array.from({ length: 8 }, (_, i) => `feed-${i}`);

let stores: SharedStores;
let upstream: StreamServer;
let gateways: GatewayProcess[];
let app: { readonly id: string; readonly organizationId: string };

const start = (): Promise<GatewayProcess> =>
  startGatewayProcess({ ...stores.env, INLET_ALLOW_NETWORKS: "127.0.0.0/8" });

beforeAll(async () => {
  [stores, upstream] = await Promise.all([startSharedStores(), startStreamServer()]);
  gateways = await Promise.all([start(), start()]);
  const blueprint = await gateways[0]?.api<{ id: string }>("POST", "/blueprints", {
    title: "Feeds",
    channels: CHANNELS.map((uid) => ({
      ...{ uid, kind: "sse", events: [{ type: "tick" }] },
      config: { url: upstream.url, run: "always", reconnect: { initialMs: 100 } },
    })),
  });
  app = (await gateways[0]?.api("POST", "/apps/install", { blueprintId: blueprint?.id })) as typeof app;
});
afterAll(async () => {
  await Promise.all(gateways.map((gateway) => gateway[Symbol.asyncDispose]()));
  await Promise.all([upstream[Symbol.asyncDispose](), stores[Symbol.asyncDispose]()]);
});

const topicOf = (uid: string): string =>
  `events.${app.organizationId}.apps.app.event_received.${app.id}.${uid}.tick`;

/** The numbers on each channel's topic, in the order of its entries. */
async function ledger(): Promise<readonly (readonly number[])[]> {
  return Promise.all(
    CHANNELS.map(async (uid) => {
      const entries = await stores.client.xrange(topicOf(uid), "-", "+");
      return entries.map(([, fields]) => JSON.parse(fields[fields.indexOf("data") + 1] ?? "").n as number);
    }),
  );
}

const shardsOf = async ({ origin }: GatewayProcess): Promise<number> => {
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

it("a gateway that is told to stop hands its streams over within two seconds; none is lost, doubled or late", async () => {
  await until(async () => (await Promise.all(gateways.map(shardsOf))).join() === "128,128");
  await until(() => upstream.open() === CHANNELS.length);
  upstream.make(50);
  await expectWhole(50);
  const [leaving, staying] = gateways as [GatewayProcess, GatewayProcess];
  const told = upstream.told.length;
  leaving.kill("SIGTERM");
  const beganAtMs = performance.now();
  upstream.make(50);
  await until(async () => (await shardsOf(staying)) === 256);
  await until(() => upstream.open() === CHANNELS.length && upstream.told.length > told);
  expect(performance.now() - beganAtMs).toBeLessThan(2_000);
  await expectWhole(100);
});
