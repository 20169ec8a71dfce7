import { sql } from "kysely";
import { beforeAll, describe, expect, it } from "vitest";
import { hashOfToken } from "../../../src/data/accounts/api-keys.ts";
import { recordAudit } from "../../../src/data/accounts/audit.ts";
import type { Author } from "../../../src/data/accounts/audit-entry.ts";
import { startRejectionCounts } from "../../../src/data/accounts/rejections.ts";
import { createLog } from "../../../src/log.ts";
import { insertDeadLetterFor } from "../../conformance/victim.ts";
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

describe("the list of audit entries", () => {
  it("contains account, change and time, oldest first, and can be filtered by entity, account and time", async () => {
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
      sentence: expect.stringMatching(/ changed name of the role role_1\.$/),
      at: "2026-01-01T00:00:01.000Z",
    });
  });

  it("describes each entry in a sentence with names, or with the id of an entity that was deleted", async () => {
    const { call } = api;
    const { name } = await call.get(`/iam/accounts/${author.accountId}`);
    const key = await call.post("/iam/api-keys", { name: "ci", permissions: ["apps.read"] });
    await call("DELETE", `/iam/api-keys/${key.id}`);
    const config = { token: "t-0123456789" };
    const origins = ["https://api.example.com"];
    const connection = await call.post("/connections", {
      name: "Example",
      kind: "bearer",
      config,
      allowedOrigins: origins,
    });
    await call.put(`/connections/${connection.id}`, { name: "Orders" });
    const sentences = async (id: string): Promise<string[]> =>
      (await call.get(`/audit?entityId=${encodeURIComponent(id)}`)).map(
        ({ sentence }: { readonly sentence: string }) => sentence,
      );
    expect(await sentences(key.id)).toEqual([
      `${name} created the API key 'ci'.`,
      `${name} revoked the API key 'ci'.`,
    ]);
    expect(await sentences(connection.id)).toEqual([
      `${name} created the connection 'Orders'.`,
      `${name} changed name of the connection 'Orders'.`,
    ]);
    await call("DELETE", `/connections/${connection.id}`);
    expect((await sentences(connection.id)).at(-1)).toBe(`${name} deleted the connection ${connection.id}.`);

    const at = Date.parse("2026-02-01T00:00:00.000Z");
    const fields = ["config.a", "config.b", "config.c", "title", "uid"];
    await note({ action: "update", entity: "channel", id: "app_s/hooks", fields }, at);
    await note({ action: "pause", entity: "channel", id: "app_s/hooks" }, at + 1, {
      ...author,
      accountId: null,
    });
    await note({ action: "issue", entity: "accessToken", id: key.id }, at);
    expect(await sentences("app_s/hooks")).toEqual([
      `${name} changed config.a, config.b, config.c and 2 more fields of the channel 'hooks' of the app app_s.`,
      "The operator paused the channel 'hooks' of the app app_s.",
    ]);
    expect((await sentences(key.id)).join()).toContain(
      `${name} obtained an access token for the API key 'ci'.`,
    );
    const exported = (await api.call("GET", "/audit/export")).body;
    expect(exported).toContain("The operator paused the channel 'hooks' of the app app_s.");
  });

  it("rejects a filter with an unknown entity or a malformed time, and a limit of 0", async () => {
    for (const query of ["entity=pigeon", "from=yesterday", "limit=0"])
      expect((await api.call("GET", `/audit?${query}`)).status).toBe(400);
  });
});

describe("a change through the API", () => {
  it("is recorded in the audit log with its caller and the changed fields, without secrets or channel addresses", async () => {
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

  it("is recorded in the audit log only if the change succeeds", async () => {
    const before = (await api.call("GET", "/audit")).headers.get("x-total-count");
    const make = { uid: "once", title: "a" };
    await api.call.post("/blueprints", make);
    expect((await api.call("POST", "/blueprints", make)).status).toBe(409);
    expect((await api.call("POST", "/blueprints", { uid: "a b", title: "a" })).status).toBe(400);
    const after = (await api.call("GET", "/audit")).headers.get("x-total-count");
    expect(Number(after) - Number(before)).toBe(1);
  });
});

describe("an operation that changes data instead of configuration", () => {
  it("is recorded in the audit log too, such as deleting an event, redriving from quarantine, or issuing a token", async () => {
    const { call } = api;
    const app = await spine.install({
      uid: "main",
      kind: "webhook",
      events: [{ type: "push", idPath: "$.id" }],
    });
    const [channel] = app.channels;
    const handler = { url: "https://handler.example/" };
    const subscription = await call.post(`/apps/${app.id}/events/subscribe`, { eventUid: "*", handler });
    const before = Number((await api.call("GET", "/audit")).headers.get("x-total-count"));

    const { events } = await spine.send(channel.id, { id: "1" });
    const place = `${events[0]?.topic}/${events[0]?.entryId}`;
    const kept = [await spine.send(channel.id, { a: 1 }), await spine.send(channel.id, { a: 2 })];
    const [first = "", second = ""] = kept.map(({ quarantine }) => quarantine[0]?.id ?? "");
    const quarantine = `/apps/${app.id}/quarantine`;
    await call.get(`${quarantine}/${first}`);
    await call.post(`${quarantine}/preview`, { channelId: channel.id, limit: 1 });
    await call.post(`${quarantine}/${first}/redrive`);
    await call.post(`${quarantine}/redrive`);
    await call.delete(`${quarantine}/${second}`);
    const letter = await insertDeadLetterFor(api.database.db, subscription.id);
    const letters = `/apps/${app.id}/subscriptions/${subscription.id}/dead-letters`;
    await call.get(letters);
    await call.get(`${letters}/${letter}`);
    await call.delete(`${letters}/${letter}`);
    await call.post(`/apps/${app.id}/subscriptions/${subscription.id}/replay`, { types: ["push"] });
    await call.delete(`/apps/${app.id}/events/${place}`);
    await call.post("/auth/tokens");

    const records = await call.get(`/audit?limit=200&offset=${before}`);
    const noted = records.map(
      ({ action, entity, entityId }: Record<string, string>) => `${action} ${entity} ${entityId}`,
    );
    const expected = [
      `read quarantinedItem ${first}`,
      `read quarantinedItem ${first}`,
      `redrive quarantinedItem ${first}`,
      `redrive quarantinedItem ${first}`,
      `redrive quarantinedItem ${second}`,
      `delete quarantinedItem ${second}`,
      `read deadLetter ${subscription.id}`,
      `read deadLetter ${letter}`,
      `delete deadLetter ${letter}`,
      `replay subscription ${subscription.id}`,
      `delete event ${place}`,
      `issue accessToken ${author.keyId}`,
    ];
    expect(noted.toSorted()).toEqual(expected.toSorted());
  });
});

describe("the export of the audit log", () => {
  it("contains every entry that matches the filters, one per line and in order, without a page limit", async () => {
    const start = Date.parse("2025-01-01T00:00:00.000Z");
    await api.database.db.transaction().execute(async (trx) => {
      for (let i = 0; i < 501; i++) {
        await recordAudit(trx, author, { action: "update", entity: "group", id: `grp_${i}` }, start + i);
      }
    });
    const { headers, body } = await api.call("GET", "/audit/export?entity=group&to=2025-01-02T00:00:00Z");
    expect(headers.get("content-type")).toBe("application/x-ndjson");
    const records = String(body)
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(records.map(({ entityId }) => entityId)).toEqual(
      Array.from({ length: 501 }, (_, i) => `grp_${i}`),
    );
    expect(records[0]).toEqual((await api.call.get("/audit?entity=group&limit=1"))[0]);
  });
});

describe("the count of rejected API requests", () => {
  const refusals = async (by = api.call) => (await by.get("/audit/rejections")) as Record<string, unknown>[];

  it("is kept for each caller and address, and only the operator sees requests with unknown tokens", async () => {
    const reader = await api.keyWith("audit.read");
    for (let i = 0; i < 3; i++) expect((await api.as(reader)("GET", "/apps")).status).toBe(403);
    for (let i = 0; i < 2; i++) expect((await api.as("ik_unknown")("GET", "/apps")).status).toBe(401);
    const found = await refusals();
    const { id: keyId } = await api.database.db
      .selectFrom("apiKeys")
      .select("id")
      .where("hash", "=", hashOfToken(reader))
      .executeTakeFirstOrThrow();
    expect(found).toContainEqual(
      expect.objectContaining({ status: 403, count: 3, keyId, organizationId: author.organizationId }),
    );
    expect(found).toContainEqual(
      expect.objectContaining({ status: 401, count: 2, keyId: null, organizationId: null }),
    );
    expect((await api.as(reader)("GET", "/apps")).status).toBe(403);
    expect(await refusals()).toContainEqual(expect.objectContaining({ keyId, count: 4 }));
    expect(await refusals(api.as(await api.createForeignKey()))).toEqual([]);
  });

  it("is kept for a whole IPv6 /64 network if the caller is unknown", async () => {
    for (const remoteAddress of ["2001:db8:0:9::1", "2001:db8:0:9:ffff::2"])
      await api.app.request("/v1/apps", {}, { incoming: { socket: { remoteAddress } } });
    const found = (await refusals()).filter(({ address }) => String(address).startsWith("2001:db8:0:9:"));
    expect(found).toMatchObject([{ address: "2001:db8:0:9::/64", status: 401, count: 2 }]);
  });

  it("puts callers beyond an hourly maximum into one common entry, separately for each organization", async () => {
    const { db } = api.database;
    const log = createLog({ level: "silent" });
    const hour = new Date("2020-01-01T02:00:00Z");
    const start = () =>
      startRejectionCounts({ db, clock: () => hour.getTime(), log, writeEveryMs: 3_600_000 });
    await using one = start();
    await using other = start();
    const unknown = { organizationId: "", accountId: "", keyId: "", status: 401 } as const;
    for (let i = 0; i < 3_000; i++) {
      one.note({ ...unknown, address: `one ${i}` });
      other.note({ ...unknown, address: `other ${i}` });
    }
    for (let i = 0; i < 7; i++) other.note({ ...unknown, address: "loud" });
    await Promise.all([one.write(), other.write()]);
    const caller = {
      organizationId: "org_b",
      accountId: "acc_b",
      keyId: "",
      address: "b",
      status: 403,
    } as const;
    for (const address of ["loud", "late"]) one.note({ ...unknown, address });
    one.note(caller);
    await one.write();
    const rows = await db
      .selectFrom("auditRefusals")
      .select(["organizationId", "address", "count"])
      .where("hour", "=", hour)
      .execute();
    const countOf = (wanted: string) => rows.find(({ address }) => address === wanted)?.count;
    expect(rows.filter(({ organizationId }) => organizationId === "")).toHaveLength(5_001);
    expect(["loud", "late", "others", "b"].map(countOf)).toEqual([8, undefined, 1_002, 1]);
  });

  it("puts callers beyond a maximum into one common entry, and survives a failed write to PostgreSQL", async () => {
    const { db } = api.database;
    const log = createLog({ level: "silent" });
    const clock = () => Date.parse("2020-01-01T00:30:00Z");
    await using counts = startRejectionCounts({ db, clock, log, writeEveryMs: 3_600_000 });
    const { organizationId } = author;
    const refusal = { organizationId, accountId: "", keyId: "", status: 401 } as const;
    for (let i = 0; i < 5_002; i++) counts.note({ ...refusal, address: `2001:db8::${i.toString(16)}` });
    await sql`ALTER TABLE audit_refusals RENAME TO away`.execute(db);
    await expect(counts.write()).rejects.toThrow("audit_refusals");
    await sql`ALTER TABLE away RENAME TO audit_refusals`.execute(db);
    await counts.write();
    const { sum, rows } = await db
      .selectFrom("auditRefusals")
      .select((eb) => [eb.fn.sum<number>("count").as("sum"), eb.fn.countAll<number>().as("rows")])
      .where("hour", "=", new Date("2020-01-01T00:00:00Z"))
      .executeTakeFirstOrThrow();
    expect([Number(sum), rows]).toEqual([5_002, 5_001]);
  });
});
