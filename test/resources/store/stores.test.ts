import { describe, expect, it } from "vitest";
import { type Caller, createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);
const { call } = api;
const stranger = opened(async () => api.as(await api.createForeignKey()));

const store = (body: object = {}) => call.post("/stores", { name: "Store", ...body });
const put = (id: string, patch: object) => call.put(`/stores/${id}`, { id, ...patch });
/** Returns the fields for which a change is rejected. */
const refused = async (id: string, body: object) =>
  (await call.expectRejection("PUT", `/stores/${id}`, body)).paths;
const ids = (list: readonly { readonly id: string }[]) => list.map(({ id }) => id);

describe("a store", () => {
  it("is private and closed to submissions by default, and is returned with every field", async () => {
    expect(await store()).toEqual({
      id: expect.stringMatching(/^store_/),
      organizationId: expect.stringMatching(/^org_/),
      name: "Store",
      description: null,
      logo: null,
      banner: null,
      privacyPolicyUrl: null,
      termsUrl: null,
      allowSubmissions: false,
      isPublic: false,
      requireApproval: true,
      commissionRate: 0,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    });
  });

  it("is changed only by a request body that contains the store's id", async () => {
    const { id } = await store({ description: "d" });
    const other = await store();
    const patch = { commissionRate: 12.5, termsUrl: "https://example.com/terms", description: null };
    expect(await put(id, patch)).toMatchObject({ id, name: "Store", ...patch });
    expect(await refused(id, { id: other.id })).toEqual(["id"]);
    expect(await refused(id, { name: "x" })).toEqual(["id"]);
    expect(await refused(id, { id, isPublic: null, name: null })).toEqual(["name", "isPublic"]);
  });

  it("accepts a commission from 0 to 100 percent in steps of 0.0001, and only http(s) URLs", async () => {
    const { id } = await store();
    for (const commissionRate of [0, 100, 0.0001, 99.9999])
      expect((await put(id, { commissionRate })).commissionRate).toBe(commissionRate);
    for (const commissionRate of [-0.1, 100.1, 0.00001, 1e300])
      expect(await refused(id, { id, commissionRate })).toEqual(["commissionRate"]);
    expect(await refused(id, { id, termsUrl: "javascript:alert(1)" })).toEqual(["termsUrl"]);
  });

  it("can be read, but not changed, by other organizations once the store is public", async () => {
    const { id } = await store();
    const path = `/stores/${id}`;
    expect((await stranger("GET", path)).status).toBe(404);
    await put(id, { isPublic: true });
    expect(await stranger.get(path)).toEqual(await call.get(path));
    expect((await stranger("PUT", path, { id, name: "theirs" })).status).toBe(404);
    expect((await stranger("DELETE", path)).status).toBe(404);
    expect(ids(await stranger.get("/stores"))).not.toContain(id);
    expect(ids(await stranger.get("/stores?isPublic=true"))).toContain(id);
    expect((await api.as(await api.keyWith("forms.read"))("GET", path)).status).toBe(403);
  });

  it("is deleted with its categories, but cannot be deleted while it has artifacts", async () => {
    const { id: storeId } = await store();
    await call.post("/stores/categories", { storeId, name: "Some" });
    const artifact = await call.post("/stores/artifacts", { kind: "form", title: "f", storeId });
    expect(await call.expectRejection("DELETE", `/stores/${storeId}`)).toMatchObject({ status: 409 });
    await call.delete(`/stores/artifacts/${artifact.id}`);
    expect(await call.delete(`/stores/${storeId}`)).toEqual({ id: storeId });
  });
});

describe("a category", () => {
  it("has a name that is unique in its store, even after concurrent requests", async () => {
    const { id: storeId } = await store();
    const create = () => call("POST", "/stores/categories", { storeId, name: "Same" });
    const answers = await Promise.all([create(), create(), create()]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
    const other = await call.post("/stores/categories", { storeId, name: "Other" });
    const path = `/stores/categories/${other.id}`;
    expect(await call.expectRejection("PUT", path, { name: "Same" })).toMatchObject({ status: 409 });
    await call.post("/stores/categories", { storeId: (await store()).id, name: "Same" });
  });

  it("cannot be deleted while it has artifacts", async () => {
    const { id: storeId } = await store();
    const { id: categoryId } = await call.post("/stores/categories", { storeId, name: "Some" });
    const artifact = await call.post("/stores/artifacts", { kind: "form", title: "f", storeId, categoryId });
    const path = `/stores/categories/${categoryId}`;
    expect(await call.expectRejection("DELETE", path)).toMatchObject({ status: 409, code: "conflict" });
    await call.put(`/stores/artifacts/${artifact.id}`, { categoryId: null });
    expect(await call.delete(path)).toEqual({ id: categoryId });
  });

  it("can contain only artifacts of its own store, and is visible to other organizations while that store is public", async () => {
    const mine = await store({ isPublic: true });
    const other = await store();
    const theirs = { storeId: mine.id, name: "theirs" };
    expect(await stranger.expectRejection("POST", "/stores/categories", theirs)).toMatchObject({
      status: 404,
    });
    const { id: categoryId } = await call.post("/stores/categories", { storeId: mine.id, name: "Some" });
    const misplaced = { kind: "form", title: "f", storeId: other.id, categoryId };
    expect(await call.expectRejection("POST", "/stores/artifacts", misplaced)).toMatchObject({ status: 404 });
    const path = `/stores/categories/${categoryId}`;
    await stranger.get(path);
    expect(ids(await stranger.get(`/stores/categories?storeId=${mine.id}`))).toEqual([categoryId]);
    expect((await stranger("PUT", path, { name: "x" })).status).toBe(404);
    await put(mine.id, { isPublic: false });
    expect((await stranger("GET", path)).status).toBe(404);
    expect(await stranger.get(`/stores/categories?storeId=${mine.id}`)).toEqual([]);
  });
});

describe("an artifact of another organization", () => {
  const submit = (storeId: string) =>
    stranger("POST", "/stores/artifacts", { kind: "form", title: "theirs", storeId });
  const decide = (id: string, decision: string, as: Caller = call) =>
    as("POST", `/stores/artifacts/${id}/${decision}`, {});

  it("is rejected by a store that does not allow submissions, and by a private store as not found", async () => {
    const { id } = await store({ isPublic: true });
    expect((await submit(id)).status).toBe(409);
    await put(id, { allowSubmissions: true, isPublic: false });
    expect((await submit(id)).status).toBe(404);
  });

  it("is published once the store approves it, and needs a new approval after a change", async () => {
    const { id } = await store({ isPublic: true, allowSubmissions: true });
    const { body: artifact } = await submit(id);
    expect(artifact.status).toBe("pending");
    const path = `/stores/artifacts/${artifact.id}`;
    const third = api.as(await api.createForeignKey());
    expect((await third("GET", path)).status).toBe(404);
    expect((await third("GET", `/stores/artifacts?storeId=${id}`)).body).toEqual([]);
    expect((await call("GET", path)).body.status).toBe("pending");
    expect((await decide(artifact.id, "approve", stranger)).status).toBe(403);
    expect((await decide(artifact.id, "approve", third)).status).toBe(404);
    expect((await decide(artifact.id, "approve")).body.status).toBe("published");
    expect((await decide(artifact.id, "approve")).status).toBe(409);
    expect((await third("GET", path)).body.status).toBe("published");
    expect((await decide(artifact.id, "approve", third)).status).toBe(404);
    expect((await call("PUT", path, { title: "ours" })).status).toBe(404);
    expect((await stranger("PUT", path, { title: "theirs" })).body.status).toBe("published");
    expect((await stranger("PUT", path, { title: "another" })).body.status).toBe("pending");
    expect((await third("GET", path)).status).toBe(404);
  });

  it("is published immediately in a store that requires no approval, until that store rejects it", async () => {
    const { id } = await store({ isPublic: true, allowSubmissions: true, requireApproval: false });
    const { body: artifact } = await submit(id);
    expect(artifact.status).toBe("published");
    expect((await decide(artifact.id, "reject")).body.status).toBe("rejected");
    expect((await decide(artifact.id, "reject")).status).toBe(409);
    const path = `/stores/artifacts/${artifact.id}`;
    expect((await stranger("PUT", path, { title: "better" })).body.status).toBe("pending");
  });
});
