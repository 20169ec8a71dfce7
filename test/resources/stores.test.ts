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

const make = async (path: string, body: object, call: Call = api.call) => {
  const answer = await call("POST", path, body);
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  return answer.body;
};
const store = (body: object = {}, call?: Call) => make("/stores", { name: "Store", ...body }, call);
const put = (id: string, patch: object, call: Call = api.call) =>
  call("PUT", `/stores/${id}`, { id, ...patch });
const paths = ({ body }: { readonly body: { readonly details: readonly { readonly path: string }[] } }) =>
  body.details.map(({ path }) => path);
const ids = (list: readonly { readonly id: string }[]) => list.map(({ id }) => id);

describe("a store", () => {
  it("is as the document has it, closed unless it is opened", async () => {
    expect(await store()).toEqual({
      ...{ id: expect.stringMatching(/^store_/), organizationId: expect.stringMatching(/^org_/) },
      ...{ name: "Store", description: null, logo: null, banner: null },
      ...{ privacyPolicyUrl: null, termsUrl: null },
      ...{ allowSubmissions: false, isPublic: false, requireApproval: true, commissionRate: 0 },
      ...{ createdAt: expect.any(String), updatedAt: expect.any(String) },
    });
  });

  it("is changed by a body that repeats its id, and by no other", async () => {
    const { id } = await store({ description: "d" });
    const other = await store();
    const patch = { commissionRate: 12.5, termsUrl: "https://example.com/terms", description: null };
    expect((await put(id, patch)).body).toMatchObject({ id, name: "Store", ...patch });
    expect(paths(await put(id, { id: other.id }))).toEqual(["id"]);
    expect(paths(await api.call("PUT", `/stores/${id}`, { name: "x" }))).toEqual(["id"]);
  });

  it("keeps from 0 to 100 percent, and names what does not fit", async () => {
    const { id } = await store();
    for (const commissionRate of [0, 100, 0.0001, 99.9999])
      expect((await put(id, { commissionRate })).body.commissionRate).toBe(commissionRate);
    for (const commissionRate of [-0.1, 100.1, 0.00001, "5", 1e300])
      expect(paths(await put(id, { commissionRate }))).toEqual(["commissionRate"]);
    expect(
      paths(await put(id, { name: null, termsUrl: "javascript:alert(1)", isPublic: 1, organizationId: "x" })),
    ).toEqual(["name", "termsUrl", "isPublic", "organizationId"]);
  });

  it("is hidden from other organizations until it is public, and theirs to read alone then", async () => {
    const { id } = await store();
    await expectHidden(stranger, "/stores", id, (named) => ({ id: named, name: "theirs" }));
    await put(id, { isPublic: true });
    expect((await stranger("GET", `/stores/${id}`)).body).toEqual(
      (await api.call("GET", `/stores/${id}`)).body,
    );
    expect((await put(id, { name: "theirs" }, stranger)).status).toBe(404);
    expect((await stranger("DELETE", `/stores/${id}`)).status).toBe(404);
    expect(ids((await stranger("GET", "/stores")).body)).not.toContain(id);
    expect(ids((await stranger("GET", "/stores?isPublic=true")).body)).toContain(id);
    expect((await api.as(await api.keyWith("forms.read"))("GET", `/stores/${id}`)).status).toBe(403);
  });

  it("is deleted with its categories, but not while artifacts are in it", async () => {
    const { id: storeId } = await store();
    await make("/stores/categories", { storeId, name: "Some" });
    const artifact = await make("/stores/artifacts", { kind: "form", title: "f", storeId });
    expect((await api.call("DELETE", `/stores/${storeId}`)).status).toBe(409);
    await api.call("DELETE", `/stores/artifacts/${artifact.id}`);
    expect((await api.call("DELETE", `/stores/${storeId}`)).body).toEqual({ id: storeId });
  });
});

describe("a category", () => {
  it("has a name that is its own in its store, also where many ask at once", async () => {
    const { id: storeId } = await store();
    const create = () => api.call("POST", "/stores/categories", { storeId, name: "Same" });
    const answers = await Promise.all([create(), create(), create()]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
    const other = await make("/stores/categories", { storeId, name: "Other" });
    expect((await api.call("PUT", `/stores/categories/${other.id}`, { name: "Same" })).status).toBe(409);
    await make("/stores/categories", { storeId: (await store()).id, name: "Same" });
  });

  it("stays while artifacts are in it", async () => {
    const { id: storeId } = await store();
    const { id: categoryId } = await make("/stores/categories", { storeId, name: "Some" });
    const artifact = await make("/stores/artifacts", { kind: "form", title: "f", storeId, categoryId });
    const path = `/stores/categories/${categoryId}`;
    const refused = await api.call("DELETE", path);
    expect([refused.status, refused.body.code]).toEqual([409, "conflict"]);
    await api.call("PUT", `/stores/artifacts/${artifact.id}`, { categoryId: null });
    expect((await api.call("DELETE", path)).body).toEqual({ id: categoryId });
  });

  it("is of a store of the caller's organization, and holds artifacts of that store", async () => {
    const mine = await store({ isPublic: true });
    const other = await store();
    await expectUnknownInside(stranger, "POST", "/stores/categories", mine.id, (storeId) => ({
      ...{ storeId, name: "theirs" },
    }));
    const { id: categoryId } = await make("/stores/categories", { storeId: mine.id, name: "Some" });
    const misplaced = { kind: "form", title: "f", storeId: other.id, categoryId };
    expect((await api.call("POST", "/stores/artifacts", misplaced)).status).toBe(404);
    expect((await stranger("GET", `/stores/categories/${categoryId}`)).status).toBe(200);
    expect(ids((await stranger("GET", `/stores/categories?storeId=${mine.id}`)).body)).toEqual([categoryId]);
    expect((await stranger("PUT", `/stores/categories/${categoryId}`, { name: "x" })).status).toBe(404);
    await put(mine.id, { isPublic: false });
    await expectHidden(stranger, "/stores/categories", categoryId, { name: "theirs" });
    expect((await stranger("GET", `/stores/categories?storeId=${mine.id}`)).body).toEqual([]);
  });
});

describe("an artifact of another organization", () => {
  const submit = (storeId: string) =>
    stranger("POST", "/stores/artifacts", { kind: "form", title: "theirs", storeId });
  const decide = (id: string, what: string, call: Call = api.call) =>
    call("POST", `/stores/artifacts/${id}/${what}`, {});

  it("is refused by a store that takes none, and unknown to one that is not public", async () => {
    const { id } = await store({ isPublic: true });
    expect((await submit(id)).status).toBe(409);
    await put(id, { allowSubmissions: true, isPublic: false });
    expect((await submit(id)).status).toBe(404);
  });

  it("is published once it is approved, and again once it was changed", async () => {
    const { id } = await store({ isPublic: true, allowSubmissions: true });
    const { body: artifact } = await submit(id);
    expect(artifact.status).toBe("pending");
    const path = `/stores/artifacts/${artifact.id}`;
    const third = api.as(await api.strangerKey());
    expect((await third("GET", path)).status).toBe(404);
    expect((await third("GET", `/stores/artifacts?storeId=${id}`)).body).toEqual([]);
    expect((await api.call("GET", path)).body.status).toBe("pending");
    expect((await decide(artifact.id, "approve", stranger)).status).toBe(403);
    expect((await decide(artifact.id, "approve", third)).status).toBe(404);
    expect((await decide(artifact.id, "approve")).body.status).toBe("published");
    expect((await decide(artifact.id, "approve")).status).toBe(409);
    expect((await third("GET", path)).body.status).toBe("published");
    expect((await decide(artifact.id, "approve", third)).status).toBe(404);
    expect((await api.call("PUT", path, { title: "ours" })).status).toBe(404);
    expect((await stranger("PUT", path, { title: "theirs" })).body.status).toBe("published");
    expect((await stranger("PUT", path, { title: "another" })).body.status).toBe("pending");
    expect((await third("GET", path)).status).toBe(404);
  });

  it("is published at once where no approval is asked for, until it is taken down", async () => {
    const { id } = await store({ isPublic: true, allowSubmissions: true, requireApproval: false });
    const { body: artifact } = await submit(id);
    expect(artifact.status).toBe("published");
    expect((await decide(artifact.id, "reject")).body.status).toBe("rejected");
    expect((await decide(artifact.id, "reject")).status).toBe(409);
    const path = `/stores/artifacts/${artifact.id}`;
    expect((await stranger("PUT", path, { title: "better" })).body.status).toBe("pending");
  });
});
