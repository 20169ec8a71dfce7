import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Call, createTestApi, type TestApi } from "../support/api.ts";
import { expectHidden } from "../support/isolated.ts";

let api: TestApi;
let stranger: Call;
let storeId: string;
beforeAll(async () => {
  api = await createTestApi();
  stranger = api.as(await api.strangerKey());
  storeId = (await api.call("POST", "/stores", { name: "Store", isPublic: true })).body.id;
});
afterAll(() => api[Symbol.asyncDispose]());

const artifact = async () =>
  (await api.call("POST", "/stores/artifacts", { kind: "form", title: "f", storeId })).body.id as string;
const review = (artifactId: string, call: Call = api.call, body: object = {}) =>
  call("POST", "/stores/reviews", { artifactId, rating: 4, ...body });
const paths = ({ body }: { readonly body: { readonly details: readonly { readonly path: string }[] } }) =>
  body.details.map(({ path }) => path);
/** Another account of the store's organization. */
async function colleague(): Promise<Call> {
  const account = (await api.call("POST", "/iam/accounts", { name: "Ada", status: "active" })).body;
  const grant = { name: "k", accountId: account.id, permissions: ["stores.read", "stores.write"] };
  return api.as((await api.call("POST", "/iam/api-keys", grant)).body.key);
}

describe("a review", () => {
  it("is the caller's, of one to five, and changed by a body that repeats its id", async () => {
    const artifactId = await artifact();
    const { body } = await review(artifactId, api.call, { title: "Good" });
    expect(body).toEqual({
      ...{
        id: expect.stringMatching(/^rev_/),
        artifactId,
        storeId,
        reviewerId: expect.stringMatching(/^acc_/),
      },
      ...{ title: "Good", content: null, rating: 4, isVerified: false },
      ...{ createdAt: expect.any(String), updatedAt: expect.any(String) },
    });
    const put = (patch: object) => api.call("PUT", `/stores/reviews/${body.id}`, patch);
    expect((await put({ id: body.id, rating: 1, title: null })).body).toMatchObject({
      rating: 1,
      title: null,
    });
    expect((await put({ id: body.id })).body).toMatchObject({ rating: 1 });
    for (const rating of [0, 6, 1.5, "5", null])
      expect(paths(await put({ id: body.id, rating }))).toEqual(["rating"]);
    expect(paths(await put({ id: `${body.id}x`, rating: 2 }))).toEqual(["id"]);
    expect(paths(await put({ rating: 2 }))).toEqual(["id"]);
    expect(paths(await put({ id: body.id, isVerified: true }))).toEqual(["isVerified"]);
  });

  it("is written once by each reviewer, also where they ask twice at once", async () => {
    const artifactId = await artifact();
    const answers = await Promise.all([1, 2, 3].map(() => review(artifactId)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
    expect((await review(artifactId, stranger)).status).toBe(200);
    const listed = await stranger("GET", `/stores/reviews?artifactId=${artifactId}`);
    expect([listed.body.length, listed.headers.get("x-total-count")]).toEqual([2, "2"]);
  });

  it("is changed by its reviewer only, and deleted by that or the store's organization", async () => {
    const artifactId = await artifact();
    const [mine, theirs] = [(await review(artifactId)).body.id, (await review(artifactId, stranger)).body.id];
    const other = await colleague();
    for (const [call, id] of [
      [stranger, mine],
      [api.call, theirs],
      [other, mine],
    ] as const) {
      const refused = await call("PUT", `/stores/reviews/${id}`, { id, rating: 1 });
      expect([refused.status, refused.body.code]).toEqual([403, "permission_denied"]);
    }
    expect((await stranger("DELETE", `/stores/reviews/${mine}`)).status).toBe(403);
    expect((await other("DELETE", `/stores/reviews/${theirs}`)).body).toEqual({ id: theirs });
    expect((await api.call("DELETE", `/stores/reviews/${mine}`)).body).toEqual({ id: mine });
  });

  it("is of a published artifact, and seen with it", async () => {
    const artifactId = await artifact();
    const { id } = (await review(artifactId)).body;
    expect((await stranger("GET", `/stores/reviews/${id}`)).status).toBe(200);
    await api.call("POST", `/stores/artifacts/${artifactId}/reject`, {});
    const patch = (named: string) => ({ id: named, rating: 1 });
    await expectHidden(stranger, "/stores/reviews", id, patch);
    expect(
      (await stranger("GET", `/stores/reviews?storeId=${storeId}`)).body.map((one: { id: string }) => one.id),
    ).not.toContain(id);
    expect((await review(artifactId, stranger)).status).toBe(404);
    const draft = (await api.call("POST", "/stores/artifacts", { kind: "form", title: "f" })).body.id;
    expect((await review(draft)).status).toBe(409);
  });
});
