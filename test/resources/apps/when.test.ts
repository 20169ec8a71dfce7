import { describe, expect, it } from "vitest";
import { channelOf } from "../../support/channels.ts";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";
import { until } from "../../support/until.ts";

const spine = opened(startTestSpine);
const { call } = { call: () => spine.api.call };

const opens = {
  type: "object",
  properties: { item: { properties: { action: { const: "opened" } }, required: ["action"] } },
  required: ["item"],
};
const rule = { type: "issue", idPath: "$.id", when: opens };

async function install(event: object, config: object = {}, kind = "webhook") {
  const app = await spine.install({ uid: "main", kind, config, events: [event] });
  const { id } = channelOf(app);
  return {
    app,
    path: `/apps/${app.id}`,
    channelPath: `/apps/${app.id}/channels/main`,
    send: (body: unknown, headers?: Record<string, string>) => spine.send(id, body, headers),
  };
}

const ignoredCount = async (): Promise<number> => {
  const { values } = (await spine.metrics.registry.getSingleMetric("inlet_events_total")?.get()) ?? {};
  return values?.find(({ labels }) => labels.status === "ignored")?.value ?? 0;
};

describe("an item that the `when` of its definition excludes", () => {
  it("is counted in the response, the record and the metric, and neither published nor quarantined", async () => {
    const { app, path, send } = await install(rule, { itemsPath: "$" });
    const before = await ignoredCount();
    const items = [{ action: "closed", id: "1" }, { action: "opened", id: "2" }, { action: "edited" }];
    expect(await send(items)).toMatchObject({ received: 3, published: 1, ignored: 2, quarantined: 0 });
    expect(await send(items.slice(0, 1))).toMatchObject({
      received: 1,
      published: 0,
      ignored: 1,
      events: [],
    });
    expect(await ignoredCount()).toBe(before + 3);
    const counts = spine.metrics.countsOf({
      number: 0,
      appId: app.id,
      uid: "main",
      organizationId: app.organizationId,
    });
    expect(counts.ignored).toBe(0);
    expect(await call().get(`${path}/quarantine`)).toEqual([]);
    await spine.path.recorder.flush();
    const [record] = await call().get(`${path}/deliveries`);
    expect(record).toMatchObject({ status: "published", received: 3, ignored: 2 });
    const { items: explained } = await call().get(`${path}/deliveries/${record.id}`);
    expect(explained[0].definitions[0]).toMatchObject({
      matches: true,
      failure: null,
      ignored: { path: "/item/action", detail: 'must be "opened"' },
    });
    expect(explained[1].definitions[0]).toMatchObject({ matches: true, ignored: null });
  });

  it("gives the delivery the status `ignored`, and leaves its id unused", async () => {
    const { path, channelPath, send } = await install(rule);
    await send({ action: "closed", id: "1" });
    await spine.path.recorder.flush();
    expect(await call().get(`${path}/deliveries?status=ignored`)).toMatchObject([{ ignored: 1 }]);
    await call().put(channelPath, { events: [{ ...rule, when: undefined }] });
    await until(async () => (await send({ action: "closed", id: "1" })).published === 1);
  });

  it("is ignored on the worker thread too", async () => {
    const { send } = await install(rule, { itemsPath: "$.list" });
    const list = Array.from({ length: 400 }, (_, n) => ({ id: `${n}`, action: n % 2 ? "opened" : "closed" }));
    const body = { list, filler: "x".repeat(200_000) };
    expect(await send(body)).toMatchObject({ received: 400, published: 200, ignored: 200, quarantined: 0 });
  });

  it("is shown by explain, and leaves quarantine with a redrive after the definition got its `when`", async () => {
    const { path, channelPath, send } = await install({ ...rule, when: undefined, idPath: "$.no" });
    expect(await send({ action: "closed" })).toMatchObject({ ignored: 0, quarantined: 1 });
    const tried = { body: '{"action":"closed"}', events: [rule] };
    expect((await call().post(`${channelPath}/explain`, tried)).items).toMatchObject([
      { events: [], failures: [], definitions: [{ ignored: { path: "/item/action" } }], closest: null },
    ]);
    const preview = { channelId: "main", events: [rule] };
    expect(await call().post(`${path}/quarantine/preview`, preview)).toMatchObject({
      released: 1,
      items: [{ isReleased: true, explanation: [{ definitions: [{ ignored: { path: "/item/action" } }] }] }],
    });
    await call().put(channelPath, { events: [rule] });
    const [{ id }] = await call().get(`${path}/quarantine`);
    await until(async () => {
      const redriven = await call().post(`${path}/quarantine/${id}/redrive`, {});
      return redriven.status === "released" && redriven.message?.includes("`when` excludes") === true;
    });
    expect(await call().get(`${path}/quarantine`)).toEqual([]);
  });

  it("is counted by a test event", async () => {
    const { channelPath } = await install(rule);
    const body = '{"action":"closed","id":"1"}';
    expect(await call().post(`${channelPath}/test`, { body })).toEqual({
      received: 1,
      ignored: 1,
      events: [],
      failures: [],
    });
  });
});

it("the `when` of a definition is stored and shown with the channel, also if it comes from a blueprint", async () => {
  const { app, channelPath } = await install(rule);
  expect((await call().get(channelPath)).events).toMatchObject([{ type: "issue", when: opens }]);
  expect((await call().get(`/blueprints/${app.blueprintId}`)).channels).toMatchObject([
    { events: [{ when: opens }] },
  ]);
});
