import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { recordAudit } from "../../src/data/audit.ts";
import type { Author } from "../../src/data/audit-entry.ts";
import { createTestApi, type TestApi } from "../support/api.ts";

let api: TestApi;
let author: Author;
beforeAll(async () => {
  api = await createTestApi();
  const key = await api.database.db.selectFrom("apiKeys").selectAll().executeTakeFirstOrThrow();
  author = {
    organizationId: key.organizationId,
    accountId: key.accountId,
    keyId: key.id,
    requestId: "req-1",
  };
});
afterAll(() => api[Symbol.asyncDispose]());

const note = (entry: Parameters<typeof recordAudit>[2], atMs: number, by: Author = author) =>
  api.database.db.transaction().execute((trx) => recordAudit(trx, by, entry, atMs));

describe("the audit list", () => {
  it("tells who changed what and when, by filters, in order, within the organization", async () => {
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
    const stranger = await api.as(await api.strangerKey())("GET", `/audit?${until}`);
    expect([stranger.status, stranger.body]).toEqual([200, []]);
    const [, { id, ...second }] = (await api.call("GET", `/audit?${until}`)).body;
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

  it("needs its permission, and refuses what is no filter's value", async () => {
    const without = await api.as(await api.keyWith("apps.read"))("GET", "/audit");
    expect([without.status, without.body.message]).toEqual([403, expect.stringContaining("audit.read")]);
    expect((await api.as(await api.keyWith("audit.read"))("GET", "/audit")).status).toBe(200);
    for (const query of ["entity=pigeon", "from=yesterday", "limit=0"]) {
      expect((await api.call("GET", `/audit?${query}`)).status).toBe(400);
    }
  });
});
