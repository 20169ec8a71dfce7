import { beforeAll, describe, expect, it } from "vitest";
import { answerPlace, claimKey, keepAnswer } from "../../../src/data/idempotency.ts";
import { createTestApi } from "../../support/api.ts";
import { type OpenApi, operationsOf } from "../../support/documented.ts";
import { opened } from "../../support/opened.ts";

let token: string;
const api = opened(createTestApi);
beforeAll(async () => {
  token = await api.keyWith("*");
});

interface Sent {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
}

/** Posts with an idempotency key. Returns the response as text, so that tests can compare it byte by byte. */
async function post(path: string, body: unknown, key: string, as = token): Promise<Sent> {
  const response = await api.app.request(`/v1${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${as}`, "content-type": "application/json", "idempotency-key": key },
    body: JSON.stringify(body),
  });
  return { status: response.status, text: await response.text(), headers: response.headers };
}

const countBlueprints = async (title: string): Promise<number> => {
  const { db } = api.database;
  return (await db.selectFrom("blueprints").select("id").where("title", "=", title).execute()).length;
};

describe("a creating request with an Idempotency-Key", () => {
  it("runs once, and a repeated request gets the first response byte for byte", async () => {
    const first = await post("/blueprints", { title: "once" }, "k-once");
    const again = await post("/blueprints", { title: "once" }, "k-once");
    expect([first.status, again.status]).toEqual([200, 200]);
    expect(again.text).toBe(first.text);
    for (const name of ["etag", "content-type"])
      expect(again.headers.get(name)).toBe(first.headers.get(name));
    expect([first, again].map(({ headers }) => headers.get("idempotent-replayed"))).toEqual([null, "true"]);
    expect(await countBlueprints("once")).toBe(1);
  });

  it("is recognized as repeated if its body has the same fields in a different order", async () => {
    const first = await post("/blueprints", { title: "order", description: "d" }, "k-order");
    const again = await post("/blueprints", { description: "d", title: "order" }, "k-order");
    expect(again.text).toBe(first.text);
  });

  it("is rejected with 409 if that key was already used for a different request", async () => {
    await post("/blueprints", { title: "mine" }, "k-other");
    for (const [path, body] of [
      ["/blueprints", { title: "yours" }],
      ["/apps/install", { blueprintId: "bp_1" }],
    ] as const) {
      const { status, text } = await post(path, body, "k-other");
      expect([status, JSON.parse(text).code]).toEqual([409, "conflict"]);
    }
    expect(await countBlueprints("yours")).toBe(0);
  });

  it("runs even if another organization has already used that key", async () => {
    const stranger = await api.createForeignKey();
    const ours = await post("/blueprints", { title: "shared" }, "k-shared");
    const theirs = await post("/blueprints", { title: "shared" }, "k-shared", stranger);
    expect(theirs.status).toBe(200);
    expect(JSON.parse(theirs.text).id).not.toBe(JSON.parse(ours.text).id);
  });

  it("runs even if the same account has already used that key in another organization", async () => {
    const { db } = api.database;
    const organizations = await db.selectFrom("organizations").select("id").limit(2).execute();
    const { id: accountId } = await db.selectFrom("accounts").select("id").executeTakeFirstOrThrow();
    const named = organizations.map(({ id }) => ({
      organizationId: id,
      accountId,
      key: "k-member-of-both",
      request: Buffer.alloc(32, id),
    }));
    expect(named).toHaveLength(2);
    for (const one of named) expect(await claimKey(db, one, Date.now())).toEqual({ kind: "first" });
    const answers = named.map((one) => api.keyring.seal(one.organizationId, answerPlace(one)));
    for (const [at, one] of named.entries()) await keepAnswer(db, one, answers[at] ?? "");
    for (const [at, one] of named.entries()) {
      expect(await claimKey(db, one, Date.now())).toEqual({ kind: "answered", sealedAnswer: answers[at] });
    }
  });

  it("runs once if it is sent ten times concurrently, and each other response is the first response or a conflict", async () => {
    const sent = await Promise.all(
      Array.from({ length: 10 }, () => post("/blueprints", { title: "crowd" }, "k-crowd")),
    );
    expect(await countBlueprints("crowd")).toBe(1);
    const done = sent.filter(({ status }) => status === 200);
    expect(new Set(done.map(({ text }) => text)).size).toBe(1);
    expect(sent.filter(({ status }) => status !== 200).every(({ status }) => status === 409)).toBe(true);
    expect((await post("/blueprints", { title: "crowd" }, "k-crowd")).text).toBe(done[0]?.text);
  });

  it("gets the same error response when it is repeated, even if the cause of the error has been fixed", async () => {
    const body = { title: "taken", uid: "taken" };
    const { id } = JSON.parse((await post("/blueprints", body, "k-taken-1")).text);
    const refused = await post("/blueprints", body, "k-taken-2");
    await api.call.delete(`/blueprints/${id}`);
    const again = await post("/blueprints", body, "k-taken-2");
    expect([refused.status, again.status, again.text]).toEqual([409, 409, refused.text]);
    expect((await post("/blueprints", body, "k-taken-3")).status).toBe(200);
  });

  it("runs again if it is repeated after an internal error", async () => {
    const { schema } = api.database.db;
    await schema.alterTable("blueprints").renameTo("elsewhere").execute();
    const failed = await post("/blueprints", { title: "later" }, "k-later");
    await schema.alterTable("elsewhere").renameTo("blueprints").execute();
    expect(failed.status).toBe(500);
    expect((await post("/blueprints", { title: "later" }, "k-later")).status).toBe(200);
  });

  it("gets a conflict response if the gateway does not know the outcome of the first request", async () => {
    await post("/blueprints", { title: "lost" }, "k-lost");
    const { db } = api.database;
    await db.updateTable("idempotencyKeys").set({ sealedAnswer: null }).where("key", "=", "k-lost").execute();
    expect((await post("/blueprints", { title: "lost" }, "k-lost")).status).toBe(409);
    expect(await countBlueprints("lost")).toBe(1);
  });

  it("runs again if it is repeated after 24 hours, and keys of that age are deleted", async () => {
    const { db } = api.database;
    await post("/blueprints", { title: "old" }, "k-old-1");
    await post("/blueprints", { title: "old" }, "k-old-2");
    const yesterday = new Date(Date.now() - 24 * 60 * 60 * 1_000);
    await db
      .updateTable("idempotencyKeys")
      .set({ createdAt: yesterday })
      .where("key", "like", "k-old-%")
      .execute();
    const again = await post("/blueprints", { title: "old" }, "k-old-1");
    expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([200, null]);
    expect(await countBlueprints("old")).toBe(3);
    const kept = await db
      .selectFrom("idempotencyKeys")
      .select("key")
      .where("key", "like", "k-old-%")
      .execute();
    expect(kept).toEqual([{ key: "k-old-1" }]);
  });

  it("gets the stored response only if the caller still has the required permission", async () => {
    await post("/blueprints", { title: "secret" }, "k-allowed");
    const reader = await api.keyWith("blueprints.read");
    expect((await post("/blueprints", { title: "secret" }, "k-allowed", reader)).status).toBe(403);
  });

  it("gets no stored response if it is repeated with another API key of the same account", async () => {
    const create = { name: "root", permissions: ["*"] };
    const first = await post("/iam/api-keys", { name: "mighty", permissions: ["*"] }, "k-mighty");
    const { accountId, key: mighty } = JSON.parse(first.text);
    const second = { name: "humble", accountId, permissions: ["iam.write"] };
    const { key: humble } = JSON.parse((await post("/iam/api-keys", second, "k-humble", mighty)).text);
    const made = await post("/iam/api-keys", create, "k-root", mighty);
    const { status, text } = await post("/iam/api-keys", create, "k-root", humble);
    expect([status, JSON.parse(text).code]).toEqual([409, "conflict"]);
    expect(text).not.toContain(JSON.parse(made.text).key);
    const { accessToken } = JSON.parse((await post("/auth/tokens", {}, "k-token", mighty)).text);
    expect((await post("/iam/api-keys", create, "k-root", accessToken)).text).toBe(made.text);
  });

  it("has its response stored encrypted, because a response may contain credentials", async () => {
    const blueprint = { title: "sealed", channels: [{ uid: "main", kind: "webhook" }] };
    const { id } = JSON.parse((await post("/blueprints", blueprint, "k-sealed-1")).text);
    const { text } = await post("/apps/install", { blueprintId: id }, "k-sealed-2");
    const [{ id: channelId }] = JSON.parse(text).channels;
    const rows = await api.database.db.selectFrom("idempotencyKeys").selectAll().execute();
    expect(JSON.stringify(rows)).not.toContain(channelId);
    expect((await post("/apps/install", { blueprintId: id }, "k-sealed-2")).text).toBe(text);
  });

  it.each([
    "",
    "with space",
    "x".repeat(256),
    "ü",
  ])("is rejected if the key is the malformed value %j", async (key) => {
    const headers = { "idempotency-key": key };
    const { status, body } = await api.call("POST", "/blueprints", { title: "a" }, headers);
    expect([status, body.details?.[0]?.path]).toEqual([400, "Idempotency-Key"]);
  });
});

it("every API operation that creates a stored resource accepts an Idempotency-Key", async () => {
  const document: OpenApi = await (await api.app.request("/v1/openapi.json")).json();
  const without = operationsOf(document)
    .map(({ method, path }) => document.paths[path][method])
    .filter(({ operationId }) => /^(create|install|register|subscribe)/.test(operationId))
    .filter(({ parameters }) => !JSON.stringify(parameters).includes("parameters/IdempotencyKey"));
  // Inlet does not store access tokens, so this operation needs no key.
  expect(without.map(({ operationId }) => operationId)).toEqual(["createAccessToken"]);
});
