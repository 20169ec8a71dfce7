import { describe, expect, it } from "vitest";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);

const agent = (body: object = {}) => api.call.post("/agents", { name: "Agent", ...body });

describe("an agent", () => {
  it("is returned with every field, null for missing values, and its embedded knowledge base", async () => {
    const knowledgeBase = await api.call.post("/knowledge-bases", {
      name: "Handbook",
      metadata: { pages: 7 },
    });
    const blueprint = await api.call.post("/blueprints", { title: "b" });
    const [{ id: spaceId }] = await api.call.get("/spaces");
    const [{ id: serviceAccountId }] = await api.call.get("/iam/accounts");
    const given = {
      uid: "helper",
      identifier: "help",
      name: "Helper",
      description: "helps",
      color: "#36f",
      baseModel: "m-1",
      llmPrompt: "Be kind.",
      blueprintId: blueprint.id,
      spaceId,
      serviceAccountId,
      customAvatarId: "avatar-1",
      avatarPublicUrl: "https://example.com/a.png",
      knowledgeBaseId: knowledgeBase.id,
      toolIds: ["search", "search"],
    };
    const made = await api.call.post("/agents", {
      ...given,
      querySuggestions: [{ content: "Where is it?" }],
    });
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
    expect(await api.call.get(`/agents/${made.id}`)).toEqual(made);
    expect(await api.call.get("/agents")).toEqual([made, bare]);
  });

  it("is changed by a merge patch that clears fields with null and replaces arrays, but keeps ids of existing query suggestions", async () => {
    const made = await agent({
      color: "red",
      toolIds: ["a", "b"],
      querySuggestions: [{ content: "one" }, { id: "two", content: "two" }],
    });
    const [one] = made.querySuggestions;
    const patch = { color: null, spaceId: null, toolIds: ["c"], querySuggestions: [{ content: "new" }, one] };
    const body = await api.call.put(`/agents/${made.id}`, patch);
    expect(body).toMatchObject({ name: "Agent", color: null, spaceId: null, toolIds: ["c"], uid: made.uid });
    expect(body.querySuggestions).toEqual([{ id: expect.stringMatching(/^qs_/), content: "new" }, one]);
  });

  it("is rejected with a malformed uid, an avatar URL that is not http(s), or two query suggestions with the same id", async () => {
    const bad = {
      name: "Agent",
      uid: "a b",
      avatarPublicUrl: "javascript:alert(1)",
      querySuggestions: [
        { id: "x", content: "a" },
        { id: "x", content: "b" },
      ],
    };
    const { status, paths = [] } = await api.call.expectRejection("POST", "/agents", bad);
    expect([status, [...paths].sort()]).toEqual([400, ["avatarPublicUrl", "querySuggestions[1].id", "uid"]]);
  });

  it("can have the same uid and identifier as an agent of another organization, but not of its own", async () => {
    const made = await agent({ uid: "own", identifier: "own" });
    for (const body of [{ uid: "own" }, { identifier: "own" }])
      expect((await api.call("POST", "/agents", { name: "b", ...body })).status).toBe(409);
    const other = await agent();
    expect((await api.call("PUT", `/agents/${other.id}`, { identifier: "own" })).status).toBe(409);
    const stranger = api.as(await api.createForeignKey());
    await stranger.post("/agents", { name: "b", uid: "own", identifier: "own" });
    await api.call.put(`/agents/${made.id}`, { uid: "own", identifier: "own" });
  });

  it("loses its reference to a blueprint or space that is deleted, but a knowledge base in use cannot be deleted", async () => {
    const knowledgeBase = await api.call.post("/knowledge-bases", { name: "kept" });
    const blueprint = await api.call.post("/blueprints", { title: "b" });
    const { id: spaceId } = await api.call.post("/spaces", { name: "s" });
    const made = await agent({ knowledgeBaseId: knowledgeBase.id, blueprintId: blueprint.id, spaceId });
    expect((await api.call("DELETE", `/knowledge-bases/${knowledgeBase.id}`)).status).toBe(409);
    for (const path of [`/blueprints/${blueprint.id}`, `/spaces/${spaceId}`]) await api.call.delete(path);
    expect(await api.call.get(`/agents/${made.id}`)).toMatchObject({ blueprintId: null, spaceId: null });
    await api.call.put(`/agents/${made.id}`, { knowledgeBaseId: null });
    await api.call.delete(`/knowledge-bases/${knowledgeBase.id}`);
    expect(await api.call.delete(`/agents/${made.id}`)).toEqual({ id: made.id });
  });
});

describe("a knowledge base", () => {
  it("can be created, read, listed, changed and deleted, and a change replaces its whole metadata", async () => {
    const collectionId = (await api.call.post("/collections", { name: "C" })).id;
    const made = await api.call.post("/knowledge-bases", {
      name: "K",
      assetId: "a-1",
      collectionId,
      postId: "p-1",
      lastIndexedAt: "2026-01-31T10:30:00+01:00",
      metadata: { a: { b: 1 }, c: null },
    });
    const [account] = await api.call.get("/iam/accounts");
    expect(made).toMatchObject({
      description: null,
      ownerId: account.id,
      assetId: "a-1",
      collectionId,
      postId: "p-1",
      lastIndexedAt: "2026-01-31T09:30:00.000Z",
      metadata: { a: { b: 1 }, c: null },
    });
    expect(await api.call.get(`/knowledge-bases/${made.id}`)).toEqual(made);
    expect(await api.call.get("/knowledge-bases?limit=200")).toContainEqual(made);
    const patch = { ownerId: null, lastIndexedAt: null, metadata: { a: { d: 2 }, c: null, e: [] } };
    const body = await api.call.put(`/knowledge-bases/${made.id}`, patch);
    expect(body).toMatchObject({ ownerId: null, lastIndexedAt: null, spaceId: made.spaceId });
    expect(body.metadata).toEqual(patch.metadata);
    const refusal = await api.call.expectRejection("PUT", `/knowledge-bases/${made.id}`, { metadata: null });
    expect(refusal).toMatchObject({ status: 400, paths: ["metadata"] });
    expect(await api.call.delete(`/knowledge-bases/${made.id}`)).toEqual({ id: made.id });
  });

  it("belongs to the caller and the caller's default space if the request names no owner and no space", async () => {
    const [account] = await api.call.get("/iam/accounts");
    const [space] = await api.call.get("/spaces");
    const made = await api.call.post("/knowledge-bases", { name: "K" });
    expect(made).toMatchObject({ ownerId: account.id, spaceId: space.id });
    const withNulls = await api.call.post("/knowledge-bases", { name: "K", ownerId: null, spaceId: null });
    expect(withNulls).toMatchObject({ ownerId: account.id, spaceId: space.id });
    const cleared = { ownerId: null, spaceId: null };
    expect(await api.call.put(`/knowledge-bases/${withNulls.id}`, cleared)).toMatchObject(cleared);
    for (const { id } of [made, withNulls]) await api.call.delete(`/knowledge-bases/${id}`);
  });

  it("accepts any member name in its metadata, including __proto__", async () => {
    const text = '{"name":"K","metadata":{"__proto__":{"a":1},"constructor":2}}';
    const made = await api.call("POST", "/knowledge-bases", text);
    expect(Object.entries(made.body.metadata)).toEqual([
      ["__proto__", { a: 1 }],
      ["constructor", 2],
    ]);
    expect((await api.call("POST", "/knowledge-bases", { name: "K", metadata: [] })).status).toBe(400);
  });

  it("is rejected if its metadata is larger than 64 KiB, or contains a time after the year 9999", async () => {
    for (const body of [
      { metadata: { a: "x".repeat(70_000) } },
      { lastIndexedAt: "9999-12-31T23:59:59-23:59" },
    ]) {
      const answer = await api.call("POST", "/knowledge-bases", { name: "K", ...body });
      expect(answer).toMatchObject({ status: 400, body: { details: [{ path: Object.keys(body)[0] }] } });
    }
  });
});

it("changes of agents are not recorded in the audit log", async () => {
  const { n } = await api.database.db
    .selectFrom("audit")
    .select((eb) => eb.fn.countAll<number>().as("n"))
    .where("entityId", "like", "agt_%")
    .executeTakeFirstOrThrow();
  expect(n).toBe(0);
});
