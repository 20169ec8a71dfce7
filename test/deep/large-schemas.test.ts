import { beforeAll, expect, it } from "vitest";
import { type InstalledApp, installApp } from "../support/channels.ts";
import { createTestStores, startTestGateway } from "../support/gateway.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";

const LARGE = 3;

/** 75 kB, which takes some hundred milliseconds to compile. */
const largeSchema = (n: number) => ({
  type: "object",
  properties: Object.fromEntries(Array.from({ length: 2_500 }, (_, i) => [`f${n}_${i}`, { type: "string" }])),
});

/** About the gateway's default timeout: a sender gets 503 while its schema is being compiled. */
const SHORT_TIMEOUT = { timeoutMs: 4_000 };

const stores = opened(createTestStores);
let large: InstalledApp;
let tiny: InstalledApp;

beforeAll(async () => {
  await using gateway = await startTestGateway(stores.env);
  large = await installApp(
    gateway,
    Array.from({ length: LARGE }, (_, n) => ({
      uid: `large${n}`,
      kind: "webhook",
      events: [{ type: "sent", schema: largeSchema(n) }],
    })),
  );
  const schema = { type: "object", required: ["a"] };
  tiny = await installApp(gateway, [{ uid: "tiny", kind: "webhook", events: [{ type: "sent", schema }] }]);
});

/** Posts to all channels concurrently, the tiny one last. Returns the channel uids in the order of acceptance. */
async function postAll(origin: string): Promise<readonly string[]> {
  const accepted: string[] = [];
  const channels = [...large.channels, ...tiny.channels];
  await Promise.all(
    channels.map(async ({ id, uid }) => {
      const post = () => fetch(`${origin}/hooks/${id}`, { method: "POST", body: '{"a":1}' });
      // Deliveries whose schema compiles slowly get a 503 and are retried. On a busy machine all of them do.
      await until(async () => (await post()).status === 200, { everyMs: 50 });
      accepted.push(uid);
    }),
  );
  return accepted;
}

it("a restarted gateway accepts deliveries for a small schema while it still compiles many large ones", async () => {
  await using gateway = await startTestGateway(stores.env, SHORT_TIMEOUT);
  const accepted = await postAll(gateway.origin);
  expect(accepted.indexOf("tiny")).toBeLessThanOrEqual(1);
});
