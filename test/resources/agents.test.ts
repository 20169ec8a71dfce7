import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Call, createTestApi, type TestApi } from "../support/api.ts";
import { expectHidden, expectUnknownInside } from "../support/isolated.ts";

let api: TestApi;
let stranger: Call;
beforeAll(async () => {
  api = await createTestApi();
  stranger = api.as(await api.strangerKey());
});
afterAll(() => api[Symbol.asyncDispose]());

const post = async (path: string, body: object) => (await api.call("POST", path, body)).body;
const get = async (path: string) => (await api.call("GET", path)).body;
const agent = (body: object = {}) => post("/agents", { name: "Agent", ...body });

describe("an agent", () => {
  it("has every field, null where there is no value, and its knowledge base whole", async () => {
    const knowledgeBase = await post("/knowledge-bases", { name: "Handbook", metadata: { pages: 7 } });
    const blueprint = await post("/blueprints", { title: "b" });
    const [{ id: spaceId }] = await get("/spaces");
    const [{ id: serviceAccountId }] = await get("/iam/accounts");
    const given = {
      ...{ uid: "helper", identifier: "help", name: "Helper", description: "helps", color: "#36f" },
      ...{ baseModel: "m-1", llmPrompt: "Be kind.", blueprintId: blueprint.id, spaceId, serviceAccountId },
      ...{ customAvatarId: "avatar-1", avatarPublicUrl: "https://example.com/a.png" },
      ...{ knowledgeBaseId: knowledgeBase.id, toolIds: ["search", "search"] },
    };
    const made = await post("/agents", { ...given, querySuggestions: [{ content: "Where is it?" }] });
    expect(made).toEqual({
      ...given,
      id: expect.stringMatching(/^agt_/),
      organizationId: knowledgeBase.organizationId,
      knowledgeBase,
      querySuggestions: [{ id: expect.stringMatching(/^qs_/), content: "Where is it?" }],
      createdAt: expect.any(String),
      updatedAt: made.createdAt,
    });
    const bare = await agent();
    expect(bare).toMatchObject({
      uid: bare.id,
      spaceId,
      knowledgeBase: null,
      querySuggestions: [],
      toolIds: [],
    });
    const { id, uid, name, organizationId, spaceId: _, createdAt, updatedAt, ...rest } = bare;
    const values = Object.values(rest).filter((value) => !Array.isArray(value));
    expect(values).toEqual(values.map(() => null));
    expect(await get(`/agents/${made.id}`)).toEqual(made);
    expect(await get("/agents")).toEqual([made, bare]);
  });

  it("is changed by a merge patch: null clears, an array replaces, suggestions that are sent back keep their ids", async () => {
    const made = await agent({
      ...{ color: "red", toolIds: ["a", "b"] },
      querySuggestions: [{ content: "one" }, { id: "two", content: "two" }],
    });
    const [one] = made.querySuggestions;
    const patch = { color: null, spaceId: null, toolIds: ["c"], querySuggestions: [{ content: "new" }, one] };
    const { body } = await api.call("PUT", `/agents/${made.id}`, patch);
    expect(body).toMatchObject({ name: "Agent", color: null, spaceId: null, toolIds: ["c"], uid: made.uid });
    expect(body.querySuggestions).toEqual([{ id: expect.stringMatching(/^qs_/), content: "new" }, one]);
  });

  it("is refused with each field that does not fit", async () => {
    const bad = {
      ...{ uid: "a b", avatarPublicUrl: "javascript:alert(1)", toolIds: [1], extra: 1 },
      querySuggestions: [
        { id: "x", content: "a" },
        { id: "x", content: "b" },
      ],
    };
    const { body } = await api.call("POST", "/agents", bad);
    const paths = body.details.map(({ path }: { readonly path: string }) => path);
    expect(paths.sort()).toEqual(
      ["avatarPublicUrl", "extra", "name", "querySuggestions[1].id", "toolIds[0]", "uid"].sort(),
    );
  });

  it("has its uid and its identifier for itself in its organization, and nowhere else", async () => {
    const made = await agent({ uid: "own", identifier: "own" });
    for (const body of [{ uid: "own" }, { identifier: "own" }])
      expect((await api.call("POST", "/agents", { name: "b", ...body })).status).toBe(409);
    const other = await agent();
    expect((await api.call("PUT", `/agents/${other.id}`, { identifier: "own" })).status).toBe(409);
    const theirs = await stranger("POST", "/agents", { name: "b", uid: "own", identifier: "own" });
    expect(theirs.status).toBe(200);
    expect((await api.call("PUT", `/agents/${made.id}`, { uid: "own", identifier: "own" })).status).toBe(200);
  });

  it("loses what is deleted, but keeps its knowledge base from that", async () => {
    const knowledgeBase = await post("/knowledge-bases", { name: "kept" });
    const blueprint = await post("/blueprints", { title: "b" });
    const { id: spaceId } = await post("/spaces", { name: "s" });
    const made = await agent({ knowledgeBaseId: knowledgeBase.id, blueprintId: blueprint.id, spaceId });
    expect((await api.call("DELETE", `/knowledge-bases/${knowledgeBase.id}`)).status).toBe(409);
    for (const path of [`/blueprints/${blueprint.id}`, `/spaces/${spaceId}`])
      expect((await api.call("DELETE", path)).status).toBe(200);
    expect(await get(`/agents/${made.id}`)).toMatchObject({ blueprintId: null, spaceId: null });
    await api.call("PUT", `/agents/${made.id}`, { knowledgeBaseId: null });
    expect((await api.call("DELETE", `/knowledge-bases/${knowledgeBase.id}`)).status).toBe(200);
    expect((await api.call("DELETE", `/agents/${made.id}`)).body).toEqual({ id: made.id });
  });

  it("is hidden from other organizations, and names nothing of them", async () => {
    const { id } = await agent();
    await expectHidden(stranger, "/agents", id, { name: "theirs" });
    const knowledgeBase = await post("/knowledge-bases", { name: "k" });
    const [account] = await get("/iam/accounts");
    const [space] = await get("/spaces");
    const blueprint = await post("/blueprints", { title: "b" });
    const theirs = (await stranger("POST", "/agents", { name: "theirs" })).body;
    for (const [field, foreign] of [
      ["knowledgeBaseId", knowledgeBase.id],
      ["serviceAccountId", account.id],
      ["spaceId", space.id],
      ["blueprintId", blueprint.id],
    ]) {
      const named = (value: string) => ({ name: "a", [field]: value });
      await expectUnknownInside(stranger, "POST", "/agents", foreign, named);
      await expectUnknownInside(stranger, "PUT", `/agents/${theirs.id}`, foreign, named);
    }
  });
});

describe("a knowledge base", () => {
  it("is made, seen, listed, changed and deleted; its metadata merges", async () => {
    const collectionId = (await post("/collections", { name: "C" })).id;
    const made = await post("/knowledge-bases", {
      ...{ name: "K", assetId: "a-1", collectionId, postId: "p-1" },
      ...{ lastIndexedAt: "2026-01-31T10:30:00+01:00", metadata: { a: { b: 1 }, c: null } },
    });
    const [account] = await get("/iam/accounts");
    expect(made).toMatchObject({
      ...{ description: null, ownerId: account.id, assetId: "a-1", collectionId, postId: "p-1" },
      ...{ lastIndexedAt: "2026-01-31T09:30:00.000Z", metadata: { a: { b: 1 }, c: null } },
    });
    expect(await get(`/knowledge-bases/${made.id}`)).toEqual(made);
    expect(await get("/knowledge-bases?limit=200")).toContainEqual(made);
    const patch = { ownerId: null, lastIndexedAt: null, metadata: { a: { d: 2 }, c: null, e: [] } };
    const { body } = await api.call("PUT", `/knowledge-bases/${made.id}`, patch);
    expect(body).toMatchObject({ ownerId: null, lastIndexedAt: null, spaceId: made.spaceId });
    expect(body.metadata).toEqual({ a: { b: 1, d: 2 }, e: [] });
    const cleared = (await api.call("PUT", `/knowledge-bases/${made.id}`, { metadata: null })).body;
    expect(cleared.metadata).toEqual({});
    expect((await api.call("DELETE", `/knowledge-bases/${made.id}`)).body).toEqual({ id: made.id });
  });

  it("takes any name in its metadata", async () => {
    const text = '{"name":"K","metadata":{"__proto__":{"a":1},"constructor":2}}';
    const made = await api.call("POST", "/knowledge-bases", text);
    expect(Object.entries(made.body.metadata)).toEqual([
      ["__proto__", { a: 1 }],
      ["constructor", 2],
    ]);
    expect((await api.call("POST", "/knowledge-bases", { name: "K", metadata: [] })).status).toBe(400);
  });

  it("is refused with more metadata than it may hold, and with times that no calendar has", async () => {
    for (const body of [
      { metadata: { a: "x".repeat(70_000) } },
      { lastIndexedAt: "9999-12-31T23:59:59-23:59" },
    ]) {
      const answer = await api.call("POST", "/knowledge-bases", { name: "K", ...body });
      expect(answer).toMatchObject({ status: 400, body: { details: [{ path: Object.keys(body)[0] }] } });
    }
  });

  it("is hidden from other organizations", async () => {
    const { id } = await post("/knowledge-bases", { name: "K" });
    await expectHidden(stranger, "/knowledge-bases", id, { name: "theirs" });
    const [account] = await get("/iam/accounts");
    await expectUnknownInside(stranger, "POST", "/knowledge-bases", account.id, (ownerId) => ({
      ...{ name: "K", ownerId },
    }));
  });
});

it("keeps nothing of agents in the audit", async () => {
  const { n } = await api.database.db
    .selectFrom("audit")
    .select((eb) => eb.fn.countAll<number>().as("n"))
    .where("entityId", "like", "agt_%")
    .executeTakeFirstOrThrow();
  expect(n).toBe(0);
});
