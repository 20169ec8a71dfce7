import { beforeAll, describe, expect, it } from "vitest";
import { recordAudit } from "../../../src/data/accounts/audit.ts";
import type { Author } from "../../../src/data/accounts/audit-entry.ts";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";

let author: Author;
const spine = opened(startTestSpine);
const { api } = spine;
beforeAll(async () => {
  const key = await api.database.db.selectFrom("apiKeys").selectAll().executeTakeFirstOrThrow();
  author = {
    organizationId: key.organizationId,
    accountId: key.accountId,
    keyId: key.id,
    requestId: "req-1",
  };
});

const note = (entry: Parameters<typeof recordAudit>[2], atMs: number, by: Author = author) =>
  api.database.db.transaction().execute((trx) => recordAudit(trx, by, entry, atMs));

describe("the audit list", () => {
  it("tells account, change and time, oldest first, and is filtered by entity, account and time", async () => {
    const start = Date.parse("2026-01-01T00:00:00.000Z");
    await note({ action: "create", entity: "role", id: "role_1" }, start);
    await note({ action: "update", entity: "role", id: "role_1", fields: ["name"] }, start + 1_000);
    await note({ action: "pause", entity: "channel", id: "app_1/main" }, start + 2_000, {
      ...author,
      accountId: "acc_other",
      keyId: null,
    });
    const list = async (query: string) => {
      const { body, headers } = await api.call("GET", `/audit${query}`);
      expect(Number(headers.get("x-total-count"))).toBeGreaterThanOrEqual(body.length);
      return body.map(({ action, entityId }: Record<string, string>) => `${action} ${entityId}`);
    };
    const until = "to=2026-01-02T00:00:00Z";
    expect(await list(`?${until}`)).toEqual(["create role_1", "update role_1", "pause app_1/main"]);
    expect(await list(`?${until}&entity=channel`)).toEqual(["pause app_1/main"]);
    expect(await list("?entity=role&entityId=role_1&from=2026-01-01T00:00:01Z")).toEqual(["update role_1"]);
    expect(await list("?accountId=acc_other")).toEqual(["pause app_1/main"]);
    expect(await list("?accountId=acc_unknown")).toEqual([]);
    expect(await list(`?${until}&limit=1&offset=1`)).toEqual(["update role_1"]);
    const [, { id, ...second }] = await api.call.get(`/audit?${until}`);
    expect(id).toMatch(/^aud_/);
    expect(second).toEqual({
      organizationId: author.organizationId,
      accountId: author.accountId,
      keyId: author.keyId,
      action: "update",
      entity: "role",
      entityId: "role_1",
      fields: ["name"],
      requestId: "req-1",
      at: "2026-01-01T00:00:01.000Z",
    });
  });

  it("refuses an unknown entity, a malformed time and a limit of 0", async () => {
    for (const query of ["entity=pigeon", "from=yesterday", "limit=0"])
      expect((await api.call("GET", `/audit?${query}`)).status).toBe(400);
  });
});

describe("a change through the API", () => {
  it("is recorded with its caller and the names of the changed fields, without secrets or channel addresses", async () => {
    const total = async () => Number((await api.call("GET", "/audit")).headers.get("x-total-count"));
    const before = await total();
    const { call } = api;
    const blueprint = await call.post("/blueprints", {
      title: "a",
      channels: [{ uid: "main", kind: "webhook", events: [{ type: "t" }] }],
    });
    await call.put(`/blueprints/${blueprint.id}`, { description: "b" });
    const app = await call.post("/apps/install", { blueprintId: blueprint.id });
    await call.put(`/apps/${app.id}`, { title: "c" });
    const channels = `/apps/${app.id}/channels`;
    const [main] = app.channels;
    await call.put(`${channels}/${main.id}`, {
      config: { dedupe: { windowSeconds: 9 }, secrets: [{ value: "never-told" }] },
    });
    const extra = await call.post(channels, { uid: "extra", kind: "webhook" });
    await call.delete(`${channels}/${extra.id}`);
    const subscribe = `/apps/${app.id}/events/subscribe`;
    const subscription = await call.post(subscribe, { eventUid: "*" });
    const other = await call.post(subscribe, { eventUid: "main:t" });
    await call.delete(`/apps/${app.id}/subscriptions/${other.id}`);
    await call.delete(`/apps/${app.id}`);
    await call.delete(`/blueprints/${blueprint.id}`);
    expect((await call("PUT", `/apps/${app.id}`, { title: "d" })).status).toBe(404);

    const body = await call.get(`/audit?limit=200&offset=${before}`);
    const noted = body.map(({ action, entity, entityId, fields }: Record<string, string>) => [
      `${action} ${entity}`,
      entityId,
      ...(fields ?? []),
    ]);
    expect(noted).toHaveLength(15);
    expect(noted).toEqual(
      expect.arrayContaining([
        ["create blueprint", blueprint.id],
        ["update blueprint", blueprint.id, "description"],
        ["install app", app.id],
        ["create channel", `${app.id}/main`],
        ["update app", app.id, "title"],
        ["update channel", `${app.id}/main`, "config.dedupe", "config.secrets"],
        ["create channel", `${app.id}/extra`],
        ["delete channel", `${app.id}/extra`],
        ["create subscription", subscription.id],
        ["create subscription", other.id],
        ["delete subscription", other.id],
        ["delete subscription", subscription.id],
        ["delete channel", `${app.id}/main`],
        ["delete app", app.id],
        ["delete blueprint", blueprint.id],
      ]),
    );
    const text = JSON.stringify(body);
    for (const hidden of ["never-told", main.id, extra.id]) expect(text).not.toContain(hidden);
    const callers = new Set(
      body.map(({ accountId, keyId }: Record<string, string>) => `${accountId} ${keyId}`),
    );
    expect([...callers]).toEqual([expect.stringMatching(/^acc_\w+ key_\w+$/)]);
    expect(body.every(({ requestId }: Record<string, string>) => requestId?.startsWith("req_"))).toBe(true);
  });

  it("is recorded only if it succeeds", async () => {
    const before = (await api.call("GET", "/audit")).headers.get("x-total-count");
    const make = { uid: "once", title: "a" };
    await api.call.post("/blueprints", make);
    expect((await api.call("POST", "/blueprints", make)).status).toBe(409);
    expect((await api.call("POST", "/blueprints", { uid: "a b", title: "a" })).status).toBe(400);
    const after = (await api.call("GET", "/audit")).headers.get("x-total-count");
    expect(Number(after) - Number(before)).toBe(1);
  });
});
