import { expect, it } from "vitest";
import { SHARD_KEYS } from "../../src/bus/keys.ts";
import { SHARDS } from "../../src/bus/sources/shard-leases.ts";
import { installApp } from "../support/channels.ts";
import { createTestStores, fieldsOn } from "../support/gateway.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { opened } from "../support/opened.ts";
import { startStreamServer } from "../support/stream-server.ts";
import { findProcessByPort, readProcessIds } from "../support/supervised.ts";
import { until } from "../support/until.ts";

const CHANNELS = Array.from({ length: 8 }, (_, i) => `feed-${i}`);
const LEASE_MS = 1_000;

const stores = opened(createTestStores);
const upstream = opened(startStreamServer);
const gateway = opened(() =>
  startGatewayProcess(
    { ...stores.env, INLET_PROCESSES: "2", INLET_ALLOW_NETWORKS: "127.0.0.0/8" },
    { sourcesTiming: { ttlMs: LEASE_MS } },
  ),
);

/** Returns the ends of the leases of all processes, in ms since 1970. */
async function readLeaseEnds(): Promise<readonly number[]> {
  const reply = await stores.client.zrange(SHARD_KEYS.workers, "0", "-1", "WITHSCORES");
  return reply.filter((_, i) => i % 2 === 1).map(Number);
}

/** Waits until two processes with the short lease each hold half of the shards, so that no source moves anymore. */
async function untilBalanced(): Promise<void> {
  await until(async () => {
    const ends = await readLeaseEnds();
    for (const end of ends) expect(end).toBeLessThanOrEqual(Date.now() + LEASE_MS);
    const owners = await stores.client.hvals(SHARD_KEYS.owners);
    const half = owners.filter((owner) => owner === owners[0]).length;
    return ends.length === 2 && half === SHARDS / 2 && owners.length === SHARDS;
  });
}

it("the event streams of a killed process continue in the other process after its lease, and no event is lost or duplicated", async () => {
  const app = await installApp(
    gateway,
    CHANNELS.map((uid) => ({
      uid,
      kind: "sse",
      events: [{ type: "tick" }],
      config: { url: upstream.url, run: "always", reconnect: { initialMs: 100 } },
    })),
  );
  const readNumbers = (uid: string): Promise<readonly number[]> =>
    fieldsOn(stores, app.topicOf(uid, "tick"), "data").then((texts) =>
      texts.map((text) => JSON.parse(text).n as number),
    );
  const untilRead = async (last: number): Promise<void> => {
    for (const uid of CHANNELS) await until(async () => (await readNumbers(uid)).includes(last));
  };
  await untilBalanced();
  await until(() => upstream.open() === CHANNELS.length);
  upstream.make(50);
  await untilRead(49);

  const [port = 0] = upstream.ports();
  const victim = await findProcessByPort(await readProcessIds(gateway.pid), port);
  const before = upstream.told.length;
  process.kill(victim, "SIGKILL");
  upstream.make(50);
  await untilRead(99);
  expect(upstream.told.length).toBeGreaterThan(before);
  // A stream stores its events in order, so any duplicate of an earlier event comes before this one.
  upstream.make(1);
  await untilRead(100);
  const expected = Array.from({ length: 101 }, (_, n) => n);
  for (const uid of CHANNELS) expect(await readNumbers(uid)).toEqual(expected);
});
