import { beforeEach, describe, expect, it } from "vitest";
import { createStoredChannels } from "../../../src/data/channels/stored-channels.ts";
import { readTables } from "../../conformance/canaries.ts";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);
const number = async (id: string) =>
  (await createStoredChannels({ db: api.database.db, keyring: api.keyring }).findById(id))?.channel.identity
    .number;

let appId: string;
beforeEach(async () => {
  const blueprint = await api.call.post("/blueprints", { title: "x", channels: [] });
  appId = (await api.call.post("/apps/install", { blueprintId: blueprint.id })).id;
});

const create = async (uid = "in") => api.call.post(`/apps/${appId}/channels`, { uid, kind: "webhook" });

/** Returns the whole content of the database as text. */
async function dump(): Promise<string> {
  const places = new Map<string, string>();
  await readTables(api.database.db, places);
  return [...places.values()].join("\n");
}

describe("the secret address of a channel", () => {
  it("appears in no table, change, audit entry or stored response, even after rotation", async () => {
    const named = { "idempotency-key": "once" };
    const made = await api.call("POST", `/apps/${appId}/channels`, { uid: "in", kind: "webhook" }, named);
    const again = await api.call("POST", `/apps/${appId}/channels`, { uid: "in", kind: "webhook" }, named);
    expect(again.body).toEqual(made.body);
    const path = `/apps/${appId}/channels`;
    const first = made.body.id;
    const rotated = await api.call("POST", `${path}/${first}/rotate`, { graceSeconds: 60 });
    const second = rotated.body.id;
    await api.call.put(`${path}/${second}`, { title: "t" });
    await api.call.post(`${path}/${second}/pause`);
    const text = await dump();
    for (const address of [first, second]) expect(text).not.toContain(address.slice(3));
    expect(text).toContain(`${appId}/in`);
    expect(rotated.headers.get("etag") ?? "").not.toContain("ch_");
    expect((await api.call("GET", `${path}/in`)).headers.get("etag")).not.toContain(second.slice(3));
    await api.call.delete(`${path}/${second}`);
    expect(await dump()).not.toContain(second.slice(3));
  });

  it("still receives deliveries after rotation, but no longer identifies the channel in the API", async () => {
    const { id } = await create();
    const { id: next } = await api.call.post(`/apps/${appId}/channels/in/rotate`, { graceSeconds: 60 });
    expect(await number(next)).toBe(await number(id));
    expect(await api.call.get(`/apps/${appId}/channels/${next}`)).toEqual(
      await api.call.get(`/apps/${appId}/channels/in`),
    );
    expect((await api.call("GET", `/apps/${appId}/channels/${id}`)).status).toBe(404);
  });

  it("identifies its channel in the API, even if another channel uses the address text as its uid", async () => {
    const { id } = await create("one");
    await create(id);
    expect((await api.call.get(`/apps/${appId}/channels/${id}`)).uid).toBe("one");
  });
});

describe("an API caller without the permission channels.read", () => {
  it("receives channels without id and url, and addresses each channel by its uid", async () => {
    const blueprint = await api.call.post("/blueprints", {
      title: "x",
      channels: [{ uid: "in", kind: "webhook" }],
    });
    const blind = api.as(await api.keyWith("apps.read", "apps.write"));
    const sees = api.as(await api.keyWith("apps.read", "apps.write", "channels.read"));
    const hidden = { uid: "in", id: null, url: null };
    const shown = {
      uid: "in",
      id: expect.stringMatching(/^ch_/),
      url: expect.stringContaining("/hooks/ch_"),
    };
    const install = { blueprintId: blueprint.id };
    expect((await sees.post("/apps/install", install)).channels).toMatchObject([shown]);
    const app = await blind.post("/apps/install", install);
    expect(app.channels).toMatchObject([hidden]);
    const path = `/apps/${app.id}/channels`;
    const answers = [
      (await blind.get(path))[0],
      (await blind.post(`/apps/${app.id}/upgrade`)).channels[0],
      await blind.get(`${path}/in`),
      await blind.put(`${path}/in`, { title: "t" }),
      await blind.post(`${path}/in/pause`),
      await blind.post(`${path}/in/resume`),
      await blind.post(`${path}/in/rotate`),
    ];
    for (const answer of answers) expect(answer).toMatchObject(hidden);
    expect(await blind.post(path, { uid: "two", kind: "webhook" })).toMatchObject({ ...hidden, uid: "two" });
    const tagOf = async (call: typeof blind) => (await call("GET", `${path}/in`)).headers.get("etag") ?? "";
    const [blindTag, tag] = [await tagOf(blind), await tagOf(sees)];
    expect(blindTag).not.toBe(tag);
    const later = await sees("GET", `${path}/in`, undefined, { "if-none-match": blindTag });
    expect([later.status, later.body.id]).toEqual([200, expect.stringMatching(/^ch_/)]);
    const changed = await blind("PUT", `${path}/in`, { title: "u" }, { "if-match": blindTag });
    expect(changed.status).toBe(200);
    expect(await sees.get(`${path}/in`)).toMatchObject(shown);
    expect(await blind.delete(`${path}/in`)).toEqual({ id: "in" });
  });
});
