import { describe, expect, it } from "vitest";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);

const hook = (...wakes: string[]) => ({ uid: "bell", kind: "webhook", config: { wakes } });
const items = {
  uid: "items",
  kind: "polling",
  config: {
    run: "always",
    request: { url: "https://api.example/items" },
    schedule: { intervalSeconds: 60 },
    discriminator: { by: "seenSet" },
    itemId: "$.id",
  },
  events: [{ type: "item" }],
};
const stream = {
  uid: "feed",
  kind: "sse",
  config: { url: "https://api.example/feed" },
  events: [{ type: "x" }],
};

async function install(...channels: object[]): Promise<string> {
  const { id: blueprintId } = await api.call.post("/blueprints", { title: "x", channels });
  return (await api.call.post("/apps/install", { blueprintId })).id;
}

const detailsOf = async (method: string, path: string, body: object) => {
  const answer = await api.call(method, path, body);
  return [answer.status, answer.body.details];
};

describe("the channels that a webhook wakes", () => {
  it("can be polling channels of the same app", async () => {
    const appId = await install(items);
    const channel = await api.call.post(`/apps/${appId}/channels`, hook("items"));
    expect(channel).toMatchObject({ config: { wakes: ["items"] }, events: [] });
  });

  it("must exist in the app and poll, and the error names the field, the uid and the likely name", async () => {
    const appId = await install(items, stream);
    const otherApp = await install({ ...items, uid: "elsewhere" });
    const path = `/apps/${appId}/channels`;
    const must = "must be the uid of a polling channel of the same app, but";
    expect(await detailsOf("POST", path, hook("items", "itmes", "feed", "elsewhere"))).toEqual([
      400,
      [
        {
          path: "config.wakes[1]",
          message: `${must} there is no channel itmes; did you mean items?`,
        },
        { path: "config.wakes[2]", message: `${must} feed is a sse channel` },
        { path: "config.wakes[3]", message: `${must} there is no channel elsewhere` },
      ],
    ]);
    expect((await api.call("POST", path, hook())).status).toBe(400);
    expect((await api.call("POST", path, hook("items", "items"))).status).toBe(400);
    const many = Array.from({ length: 17 }, (_, i) => `c${i}`);
    expect((await api.call("POST", path, hook(...many))).status).toBe(400);
    const foreign = api.as(await api.createForeignKey());
    expect((await foreign("POST", `/apps/${otherApp}/channels`, hook("elsewhere"))).status).toBe(404);
  });

  it("can be deleted, after which the webhook keeps its settings and can still be changed", async () => {
    const appId = await install(items, { ...items, uid: "others" });
    const { uid } = await api.call.post(`/apps/${appId}/channels`, hook("items"));
    const path = `/apps/${appId}/channels/${uid}`;
    await api.call.delete(`/apps/${appId}/channels/items`);
    expect(await api.call.put(path, { title: "Bell" })).toMatchObject({ config: { wakes: ["items"] } });
    expect(await api.call.put(path, { config: { wakes: ["items", "others"] } })).toMatchObject({
      config: { wakes: ["items", "others"] },
    });
    expect((await api.call("PUT", path, { config: { wakes: ["gone"] } })).status).toBe(400);
    expect((await api.call.put(path, { config: { wakes: null } })).config.wakes).toBeUndefined();
    expect((await api.call("PUT", path, { config: { wakes: ["items"] } })).status).toBe(400);
  });

  it("can come from the same blueprint, whatever the order, and follow the upgrades of an app", async () => {
    const channels = [hook("items"), items];
    const { id: blueprintId } = await api.call.post("/blueprints", { title: "x", channels });
    const app = await api.call.post("/apps/install", { blueprintId });
    expect(app.channels[0].config.wakes).toEqual(["items"]);
    const next = [hook("items", "others"), items, { ...items, uid: "others" }];
    await api.call.put(`/blueprints/${blueprintId}`, { channels: next });
    const upgraded = await api.call.post(`/apps/${app.id}/upgrade`, {});
    expect(upgraded).toMatchObject({ added: ["others"], updated: ["bell"] });
    expect(upgraded.channels[0].config.wakes).toEqual(["items", "others"]);
  });

  it("must be in the blueprint of the webhook", async () => {
    const channels = [items, hook("items", "bell", "none")];
    const [status, details] = await detailsOf("POST", "/blueprints", { title: "x", channels });
    expect([status, details.map(({ path }: { path: string }) => path)]).toEqual([
      400,
      ["channels[1].config.wakes[1]", "channels[1].config.wakes[2]"],
    ]);
  });
});

it("a channel of another kind than webhook cannot wake channels", async () => {
  const appId = await install(items);
  const config = { wakes: ["items"] };
  const answer = await api.call("POST", `/apps/${appId}/channels`, {
    uid: "ce",
    kind: "cloudevents",
    config,
  });
  expect(answer.status).toBe(400);
});
