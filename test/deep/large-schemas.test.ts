import { sql } from "kysely";
import { beforeAll, expect, it } from "vitest";
import { createTestStores, type InstalledApp, installApp, startTestGateway } from "../support/gateway.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";

const LARGE = 3;

/** 75 kB: some hundred milliseconds to compile. */
const largeSchema = (n: number) => ({
  type: "object",
  properties: Object.fromEntries(Array.from({ length: 2_500 }, (_, i) => [`f${n}_${i}`, { type: "string" }])),
});

/** About what gateways have: a sender is told to come again while a schema is compiled. */
const HURRIED = { timeoutMs: 4_000 };

const stores = opened(createTestStores);
let large: InstalledApp;
let tiny: InstalledApp;

/** Changes with each write of a row. */
async function keptCode(): Promise<readonly string[]> {
  const { rows } = await sql<{ version: string }>`
    SELECT xmin::text AS version FROM schema_code ORDER BY digest`.execute(stores.db);
  return rows.map(({ version }) => version);
}

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
  await until(async () => (await keptCode()).length === LARGE + 1);
});

/** All at once, the tiny one last; answers the names of the channels in the order in which their deliveries were accepted. */
async function postAll(origin: string): Promise<readonly string[]> {
  const accepted: string[] = [];
  const channels = [...large.channels, ...tiny.channels];
  await Promise.all(
    channels.map(async ({ id, uid }) => {
      const post = () => fetch(`${origin}/hooks/${id}`, { method: "POST", body: '{"a":1}' });
      // Of those that take long a sender is told to try again; on a busy machine all of them do.
      await until(async () => (await post()).status === 200, { everyMs: 50 });
      accepted.push(uid);
    }),
  );
  return accepted;
}

it("are not compiled again by a gateway that starts", async () => {
  const before = await keptCode();
  await using gateway = await startTestGateway(stores.env, HURRIED);
  await postAll(gateway.origin);
  expect(await keptCode()).toEqual(before);
});

it("keep no small one waiting after a start, even if they are all compiled again", async () => {
  await stores.db.deleteFrom("schemaCode").execute();
  await using gateway = await startTestGateway(stores.env, HURRIED);
  const accepted = await postAll(gateway.origin);
  expect(accepted.indexOf("tiny")).toBeLessThanOrEqual(1);
  await until(async () => (await keptCode()).length === LARGE + 1);
});
