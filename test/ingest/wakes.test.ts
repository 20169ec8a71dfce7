import { beforeAll, describe, expect, it } from "vitest";
import { UnavailableError } from "../../src/lib/errors.ts";
import { opened } from "../support/opened.ts";
import { startRedis } from "../support/redis.ts";
import { startTestSpine, type TestSpine } from "../support/spine.ts";
import { until } from "../support/until.ts";

const spine = opened(startTestSpine);

const polling = (uid: string) => ({
  uid,
  kind: "polling",
  config: {
    run: "always",
    request: { url: "https://api.example/items" },
    schedule: { intervalSeconds: 60 },
    discriminator: { by: "seenSet" },
    itemId: "$.id",
  },
  events: [{ type: "item" }],
});
const hook = (config: object, events: readonly object[] = []) => ({
  uid: "bell",
  kind: "webhook",
  config,
  events,
});

async function install(on: TestSpine, config: object, events?: readonly object[]) {
  const app = await on.install(
    hook({ wakes: ["items"], ...config }, events),
    polling("items"),
    polling("more"),
  );
  return { appId: app.id as string, bell: app.channels[0].id as string };
}

/** Returns the uids of the app's channels whose wake is stored. */
async function wakesOf({ server }: TestSpine, appId: string): Promise<string[]> {
  const prefix = `inlet:{jobs.polls}:polls:de:wake.${appId}.`;
  const keys = await server.client.keys(`${prefix}*`);
  return keys.map((key) => key.slice(prefix.length)).sort();
}

const EMPTY = {
  received: 0,
  published: 0,
  duplicates: 0,
  ignored: 0,
  quarantined: 0,
  events: [],
  quarantine: [],
};

describe("a delivery to a webhook channel that wakes others", () => {
  it("is accepted without event definitions, stores the wakes, and publishes and quarantines nothing", async () => {
    const { appId, bell } = await install(spine, { wakes: ["items", "more"] });
    expect(await spine.send(bell, "no JSON", { "content-type": "image/png" })).toEqual({
      ...EMPTY,
      woken: ["items", "more"],
    });
    expect(await wakesOf(spine, appId)).toEqual(["items", "more"]);
    expect(await spine.api.call.get(`/apps/${appId}/quarantine`)).toEqual([]);
    const preview = { headers: {}, body: "{}" };
    expect(await spine.api.call.post(`/apps/${appId}/channels/bell/test`, preview)).toEqual({
      received: 0,
      ignored: 0,
      events: [],
      failures: [],
    });
  });

  it("is published as always if the channel has event definitions", async () => {
    const { appId, bell } = await install(spine, {}, [{ type: "rang", idPath: "$.id" }]);
    expect(await spine.send(bell, { id: "1" })).toMatchObject({ published: 1, woken: ["items"] });
    expect(await spine.send(bell, { id: "1" })).toMatchObject({ duplicates: 1, woken: ["items"] });
    expect(await wakesOf(spine, appId)).toEqual(["items"]);
  });

  it("wakes no channels if its sender is not verified", async () => {
    const { appId, bell } = await install(spine, {
      verification: { scheme: "token", name: "x-token" },
    });
    await spine.api.call.put(`/apps/${appId}/channels/bell`, {
      config: { secrets: [{ value: "the token" }] },
    });
    expect((await spine.deliver(bell, "{}", { "x-token": "wrong" })).kind).toBe("unverified");
    expect(await wakesOf(spine, appId)).toEqual([]);
    await spine.send(bell, "{}", { "x-token": "the token" });
    expect(await wakesOf(spine, appId)).toEqual(["items"]);
  });

  it("wakes channels even while its own channel is paused", async () => {
    const { appId, bell } = await install(spine, {}, [{ type: "rang" }]);
    await spine.api.call.post(`/apps/${appId}/channels/bell/pause`, {});
    const outcome = await spine.send(bell, { id: "1" });
    expect(outcome).toMatchObject({ quarantined: 1, woken: ["items"] });
    expect(await wakesOf(spine, appId)).toEqual(["items"]);
  });

  it("wakes only channels of its own app, although other apps and organizations have channels with the same uid", async () => {
    const { appId, bell } = await install(spine, {});
    const other = await install(spine, {});
    const foreign = spine.api.as(await spine.api.createForeignKey());
    const { id: blueprintId } = await foreign.post("/blueprints", {
      title: "x",
      channels: [polling("items")],
    });
    const foreignApp = await foreign.post("/apps/install", { blueprintId });
    await spine.send(bell, "{}");
    expect(await wakesOf(spine, appId)).toEqual(["items"]);
    expect(await wakesOf(spine, other.appId)).toEqual([]);
    expect(await wakesOf(spine, foreignApp.id)).toEqual([]);
  });

  it("is counted once per wake, as stored or as coalesced with a waiting one", async () => {
    const { bell } = await install(spine, {});
    const countOf = async (result: string) => {
      const text = await spine.metrics.registry.metrics();
      const line = new RegExp(`inlet_wakes_total\\{kind="webhook",result="${result}"\\} (\\d+)`);
      return Number(line.exec(text)?.[1] ?? 0);
    };
    const before = [await countOf("stored"), await countOf("coalesced")];
    for (let i = 0; i < 3; i++) await spine.send(bell, "{}");
    const after = [await countOf("stored"), await countOf("coalesced")];
    expect(after.map((count, i) => count - (before[i] ?? 0))).toEqual([1, 2]);
  });
});

it("the source of a woken channel shows the number of wakes and the last one, and only its own", async () => {
  const { appId, bell } = await install(spine, {});
  const sourceOf = (uid: string) => spine.api.call.get(`/apps/${appId}/channels/${uid}/source`);
  expect((await sourceOf("items")).wakes).toBeNull();
  const before = Date.now();
  for (let i = 0; i < 3; i++) await spine.send(bell, "{}");
  const { count, lastAt } = (await sourceOf("items")).wakes;
  expect(count).toBe(3);
  expect(Date.parse(lastAt)).toBeGreaterThanOrEqual(before);
  expect((await sourceOf("more")).wakes).toBeNull();
});

describe("the record of a delivery that wakes channels", () => {
  // The first record may be too late to be written, because the first delivery loads code.
  let app: Awaited<ReturnType<typeof install>>;
  beforeAll(async () => {
    app = await install(spine, {});
    await until(async () => {
      await spine.send(app.bell, "{}");
      await spine.path.recorder.flush();
      return (await spine.api.call.get(`/apps/${app.appId}/deliveries`)).length > 0;
    });
  });

  it("has the status `woke` and names the channels", async () => {
    const path = `/apps/${app.appId}/deliveries`;
    const [record] = await spine.api.call.get(`${path}?status=woke`);
    expect(record).toMatchObject({ status: "woke", httpStatus: 200, received: 0, woken: ["items"] });
    expect(await spine.api.call.get(`${path}/${record.id}`)).toMatchObject({ items: [], explanation: [] });
  });
});

it("a delivery whose wake cannot be stored fails, so that the sender retries, and no wake is lost", async () => {
  const server = await startRedis();
  await using own = await startTestSpine({ server });
  const { appId, bell } = await install(own, {}, [{ type: "rang", idPath: "$.id" }]);
  await own.send(bell, { id: "1" });
  const delivered = async () => (await own.deliver(bell, { id: "2" })).kind;
  server.signal("SIGKILL");
  await expect(delivered()).rejects.toBeInstanceOf(UnavailableError);
  await server.restart();
  await until(() =>
    delivered().then(
      (kind) => kind === "accepted",
      () => false,
    ),
  );
  expect(await wakesOf(own, appId)).toEqual(["items"]);
});
