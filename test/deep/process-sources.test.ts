import { expect, it } from "vitest";
import { SHARD_KEYS } from "../../src/bus/keys.ts";
import { installApp } from "../support/channels.ts";
import { createTestStores, fieldsOn } from "../support/gateway.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { opened } from "../support/opened.ts";
import { startStreamServer } from "../support/stream-server.ts";
import { readProcessIds } from "../support/supervised.ts";
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
  const expectAll = async (made: number): Promise<void> => {
    const expected = Array.from({ length: made }, (_, n) => n);
    for (const uid of CHANNELS) {
      await until(async () => (await readNumbers(uid)).length >= made);
      expect(await readNumbers(uid)).toEqual(expected);
    }
  };
  await until(() => upstream.open() === CHANNELS.length);
  upstream.make(50);
  await expectAll(50);
  const ends = await readLeaseEnds();
  expect(ends).toHaveLength(2);
  for (const end of ends) expect(end).toBeLessThanOrEqual(Date.now() + LEASE_MS);

  const [victim] = await readProcessIds(gateway.pid);
  process.kill(victim ?? 0, "SIGKILL");
  upstream.make(50);
  await expectAll(100);
});
