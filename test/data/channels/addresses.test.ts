import { sql } from "kysely";
import { beforeEach, describe, expect, it } from "vitest";
import { findFormerAddress } from "../../../src/data/channels/channel-addresses.ts";
import { endPlainAddresses, sealAddresses } from "../../../src/data/channels/seal-addresses.ts";
import { createStoredChannels } from "../../../src/data/channels/stored-channels.ts";
import { createChannelId } from "../../../src/lib/secrets/channel-id.ts";
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
const setPlain = (plainAddresses: boolean) =>
  api.database.db.updateTable("cluster").set({ plainAddresses }).execute();

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

describe("channel addresses shared with gateways of an earlier version", () => {
  /** Rotates the address of a channel the way an earlier version does. */
  const giveAnother = async (before: string) => {
    const id = createChannelId(api.keyring.channelIdKey);
    await sql`INSERT INTO channel_addresses (id, channel_number, created_at, expires_at)
      SELECT id, number, now(), now() + interval '1 hour' FROM channels WHERE id = ${before}`.execute(
      api.database.db,
    );
    await sql`UPDATE channels SET id = ${id} WHERE id = ${before}`.execute(api.database.db);
    return id;
  };

  it("are found by both versions until the addresses expire", async () => {
    await setPlain(true);
    const { db } = api.database;
    const ours = await create();
    const plain = () => sql<{ id: string }>`SELECT id FROM channels`.execute(db);
    expect((await plain()).rows).toContainEqual({ id: ours.id });
    const theirs = await giveAnother(ours.id);
    expect(await number(theirs)).toBeDefined();
    expect(await findFormerAddress(db, api.keyring, ours.id)).toMatchObject({ leftMs: expect.any(Number) });
    await sql`DELETE FROM channel_addresses`.execute(db);
    expect(await number(ours.id)).toBeUndefined();
    expect((await api.call.get(`/apps/${appId}/channels/${theirs}`)).url).toContain(theirs);
    const next = await api.call.post(`/apps/${appId}/channels/${theirs}/rotate`, { graceSeconds: 60 });
    expect((await plain()).rows).toContainEqual({ id: next.id });
    expect([await number(theirs), await number(next.id)]).toEqual([
      await number(next.id),
      await number(next.id),
    ]);
  });

  it("are encrypted by sealAddresses(), which deletes the plain text", async () => {
    await setPlain(true);
    const { db } = api.database;
    const { id } = await create();
    const theirs = await giveAnother(id);
    // The current address and the former one.
    expect(await sealAddresses(db, api.keyring)).toBe(2);
    expect(await sealAddresses(db, api.keyring)).toBe(0);
    const late = await giveAnother(theirs);
    for (const _ of [1, 2]) await db.transaction().execute((trx) => endPlainAddresses(trx, api.keyring));
    const text = await dump();
    for (const address of [id, theirs, late]) expect(text).not.toContain(address.slice(3));
    expect(await number(late)).toBeDefined();
    expect([await number(id), await number(theirs)]).toEqual([await number(late), await number(late)]);
  });

  it("are all encrypted by sealAddresses(), even if there are more addresses than fit into one batch", async () => {
    await setPlain(true);
    const { db } = api.database;
    await create();
    await sql`
      INSERT INTO channels
      SELECT (jsonb_populate_record(one, jsonb_build_object('number', 1000000 + n, 'id', 'ch_' || n, 'uid', 'in' || n,
        'address_hash', NULL, 'sealed_address', NULL))).*
      FROM channels AS one, generate_series(1, 1001) AS n WHERE one.app_id = ${appId} AND one.uid = 'in'`.execute(
      db,
    );
    expect(await sealAddresses(db, api.keyring)).toBe(1_001);
    expect(await sealAddresses(db, api.keyring)).toBe(0);
  });

  it("are not left in plain text, even if a concurrent writer had read the setting before sealAddresses() changed it", async () => {
    await setPlain(false);
    const { id } = await create();
    await sql`UPDATE channels SET id = ${id} WHERE uid = 'in' AND app_id = ${appId}`.execute(api.database.db);
    // Without a hash the row looks like one of an earlier version, so the address must be kept.
    expect(await number(id)).toBeDefined();
    await sealAddresses(api.database.db, api.keyring);
    await sql`UPDATE channels SET id = ${id}, address_hash = address_hash || '\\x00'
      WHERE uid = 'in' AND app_id = ${appId}`.execute(api.database.db);
    const { rows } = await sql`SELECT id FROM channels WHERE app_id = ${appId}`.execute(api.database.db);
    expect(rows).toEqual([{ id: null }]);
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
