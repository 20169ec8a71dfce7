import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { openedBus } from "../../bus/support.ts";
import { awayBus, type Caller, createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const { redis } = openedBus();
const openBus = async () => ({ ...awayBus(), redis });
const api = opened(() => createTestApi({ rowsPerResource: 3, openBus }));

/** Creates rows until a request is rejected. Returns the number of rows and the rejection. */
async function fill(by: Caller, path: string, body: (n: number) => object) {
  for (let n = 0; n < 6; n++) {
    const answer = await by("POST", path, body(n));
    if (answer.status !== 200) return { made: n, status: answer.status, message: answer.body.message };
  }
  return { made: 6 };
}

describe("the limit on database rows of an organization", () => {
  it("applies to each resource and organization separately, and is named in the 409 response", async () => {
    const [first, second] = [api.as(await api.createForeignKey()), api.as(await api.createForeignKey())];
    const full = { made: 3, status: 409, message: expect.stringContaining("rowsPerResource") };
    expect(await fill(first, "/rooms", (n) => ({ title: String(n) }))).toEqual(full);
    expect(await fill(first, "/collections", (n) => ({ name: String(n) }))).toEqual(full);
    expect(await fill(second, "/rooms", (n) => ({ title: String(n) }))).toEqual(full);
    const [{ id }] = await first.get("/rooms");
    await first.delete(`/rooms/${id}`);
    expect((await first("POST", "/rooms", { title: "again" })).status).toBe(200);
    expect(await fill(first, "/rooms", (n) => ({ title: String(n) }))).toEqual({ ...full, made: 0 });
  });

  it("counts the rows of all parents together, for example participants of all rooms", async () => {
    const by = api.as(await api.createForeignKey());
    const rooms = [await by.post("/rooms", { title: "a" }), await by.post("/rooms", { title: "b" })];
    const join = (n: number) =>
      by("POST", `/rooms/${rooms[n % 2].id}/participants`, { firstName: String(n) });
    const statuses = [];
    for (let n = 0; n < 5; n++) statuses.push((await join(n)).status);
    expect(statuses).toEqual([200, 200, 200, 409, 409]);
    const blueprint = await by.post("/blueprints", { title: "x" });
    const made = await fill(by, "/apps/install", () => ({ blueprintId: blueprint.id }));
    expect(made).toMatchObject({ made: 3, status: 409 });
    const [app] = await by.get("/apps");
    const channels = await fill(by, `/apps/${app.id}/channels`, (n) => ({ uid: `c${n}`, kind: "webhook" }));
    expect(channels).toMatchObject({ made: 3, status: 409 });
    const state = await by.post("/states", { name: "s" });
    const variables = await fill(by, `/states/${state.id}/variables`, (n) => [{ name: `v${n}` }]);
    expect(variables).toMatchObject({ made: 3, status: 409 });
  });

  it("does not count the subscriptions of agents, which the API does not list as subscriptions", async () => {
    const by = api.as(await api.createForeignKey());
    const blueprint = await by.post("/blueprints", { title: "x" });
    const app = await by.post("/apps/install", { blueprintId: blueprint.id });
    await by.post(`/apps/${app.id}/channels`, { uid: "in", kind: "webhook" });
    await sql`INSERT INTO subscriptions (id, organization_id, app_id, event_uid, state, start_at, start_ms, created_at,
        updated_at, agent, agent_id, agent_principal, expires_at)
      SELECT 'agt_' || n, organization_id, id, 'in:e', 'active', 'now', 0, now(), now(), '{}', n, 'p', now()
      FROM apps, generate_series(1, 3) AS n WHERE id = ${app.id}`.execute(api.database.db);
    const made = await fill(by, `/apps/${app.id}/events/subscribe`, () => ({ eventUid: "*" }));
    expect(made).toMatchObject({ made: 3, status: 409 });
  });

  it("rejects a whole request that would create more rows than allowed", async () => {
    const by = api.as(await api.createForeignKey());
    const refused = { status: 409, body: { message: expect.stringContaining("rowsPerResource") } };
    const state = await by.post("/states", { name: "s" });
    const variables = (count: number) => Array.from({ length: count }, (_, n) => ({ name: `v${n}` }));
    expect(await by("POST", `/states/${state.id}/variables`, variables(4))).toMatchObject(refused);
    expect((await by("POST", `/states/${state.id}/variables`, variables(3))).status).toBe(200);

    const channels = ["a", "b"].map((uid) => ({ uid, kind: "webhook", title: uid }));
    const { id: blueprintId } = await by.post("/blueprints", { title: "x", channels });
    const app = await by.post("/apps/install", { blueprintId });
    expect(await by("POST", "/apps/install", { blueprintId })).toMatchObject(refused);
    expect(await by.get("/apps")).toHaveLength(1);
    const more = ["c", "d"].map((uid) => ({ uid, kind: "webhook", title: uid }));
    await by.put(`/blueprints/${blueprintId}`, { title: "x", channels: [...channels, ...more] });
    expect(await by("POST", `/apps/${app.id}/upgrade`)).toMatchObject(refused);
    // Replacing two channels with two others keeps the total. Replacing two with four exceeds the limit of three.
    const upgradeTo = async (uids: readonly string[]) => {
      const wanted = uids.map((uid) => ({ uid, kind: "webhook", title: uid }));
      await by.put(`/blueprints/${blueprintId}`, { title: "x", channels: wanted });
      return by("POST", `/apps/${app.id}/upgrade`, { removeMissing: true });
    };
    expect((await upgradeTo(["c", "d"])).status).toBe(200);
    expect(await upgradeTo(["e", "f", "g", "h"])).toMatchObject(refused);
    expect((await upgradeTo(["e", "f", "g"])).status).toBe(200);

    const room = await by.post("/rooms", { title: "r" });
    for (const firstName of ["a", "b"])
      await by.post(`/rooms/${room.id}/participants`, { firstName, autoJoin: true });
    expect(await by("POST", "/conversations", { roomId: room.id })).toMatchObject(refused);
    expect(await by.get("/conversations")).toEqual([]);
  });

  it("also applies to rows created as a side effect, such as a conversation's first message or an API key's account", async () => {
    const by = api.as(await api.createForeignKey());
    const room = await by.post("/rooms", { title: "r" });
    const { id } = await by.post("/conversations", { roomId: room.id });
    for (const content of ["1", "2", "3"]) await by.post(`/conversations/${id}/messages`, { content });
    const live = { roomId: room.id, message: "4" };
    expect((await by("POST", "/conversations/CreateLiveConversation", live)).status).toBe(409);
    expect((await by("POST", "/conversations/CreateLiveConversation", { roomId: room.id })).status).toBe(200);
    const key = (n: number) => ({ name: String(n), permissions: ["rooms.read"] });
    await by.post("/iam/accounts", { name: "another" });
    // The organization already has its first account and key.
    expect(await fill(by, "/iam/api-keys", key)).toMatchObject({
      made: 1,
      status: 409,
      message: expect.stringContaining("accounts"),
    });
  });

  it("does not apply to the operator's organization", async () => {
    expect(await fill(api.call, "/rooms", (n) => ({ title: String(n) }))).toEqual({ made: 6 });
  });
});
