import { beforeAll, describe, expect, it } from "vitest";
import { type Caller, createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

let storeId: string;
const api = opened(createTestApi);
const { call } = api;
const stranger = opened(async () => api.as(await api.createForeignKey()));
beforeAll(async () => {
  storeId = (await call.post("/stores", { name: "Store", isPublic: true })).id;
});

const artifact = async (): Promise<string> =>
  (await call.post("/stores/artifacts", { kind: "form", title: "f", storeId })).id;
const review = (artifactId: string, as: Caller = call, body: object = {}) =>
  as.post("/stores/reviews", { artifactId, rating: 4, ...body });
/** Returns a caller with another account of the store's organization. */
async function colleague(): Promise<Caller> {
  const grant = { name: "k", permissions: ["stores.read", "stores.write"] };
  return api.as((await call.post("/iam/api-keys", grant)).key);
}

describe("a review", () => {
  it("belongs to its author and has a rating from one to five, and a change must repeat the review's id", async () => {
    const artifactId = await artifact();
    const made = await review(artifactId, call, { title: "Good" });
    expect(made).toEqual({
      id: expect.stringMatching(/^rev_/),
      artifactId,
      storeId,
      reviewerId: expect.stringMatching(/^acc_/),
      title: "Good",
      content: null,
      rating: 4,
      isVerified: false,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    });
    const { id } = made;
    const path = `/stores/reviews/${id}`;
    expect(await call.put(path, { id, rating: 1, title: null })).toMatchObject({ rating: 1, title: null });
    expect(await call.put(path, { id })).toMatchObject({ rating: 1 });
    const refused = async (patch: object) => (await call.expectRejection("PUT", path, patch)).paths;
    for (const rating of [0, 6, 1.5]) expect(await refused({ id, rating })).toEqual(["rating"]);
    expect(await refused({ id: `${id}x`, rating: 2 })).toEqual(["id"]);
    expect(await refused({ rating: 2 })).toEqual(["id"]);
    expect(await refused({ id, isVerified: true })).toEqual(["isVerified"]);
  });

  it("can exist only once for each reviewer and artifact, even after concurrent requests", async () => {
    const artifactId = await artifact();
    const body = { artifactId, rating: 4 };
    const answers = await Promise.all([1, 2, 3].map(() => call("POST", "/stores/reviews", body)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
    await review(artifactId, stranger);
    const listed = await stranger("GET", `/stores/reviews?artifactId=${artifactId}`);
    expect([listed.body.length, listed.headers.get("x-total-count")]).toEqual([2, "2"]);
  });

  it("can be changed only by its reviewer, and deleted by its reviewer or the store's organization", async () => {
    const artifactId = await artifact();
    const [mine, theirs] = [(await review(artifactId)).id, (await review(artifactId, stranger)).id];
    const other = await colleague();
    const denied = { status: 403, code: "permission_denied" };
    for (const [as, id] of [
      [stranger, mine],
      [call, theirs],
      [other, mine],
    ] as const)
      expect(await as.expectRejection("PUT", `/stores/reviews/${id}`, { id, rating: 1 })).toMatchObject(
        denied,
      );
    expect(await stranger.expectRejection("DELETE", `/stores/reviews/${mine}`)).toMatchObject(denied);
    expect(await other.delete(`/stores/reviews/${theirs}`)).toEqual({ id: theirs });
    expect(await call.delete(`/stores/reviews/${mine}`)).toEqual({ id: mine });
  });

  it("requires a published artifact, and is hidden from other organizations once the artifact is rejected", async () => {
    const artifactId = await artifact();
    const { id } = await review(artifactId);
    const path = `/stores/reviews/${id}`;
    await stranger.get(path);
    await call.post(`/stores/artifacts/${artifactId}/reject`);
    for (const [method, patch] of [["GET"], ["PUT", { id, rating: 1 }], ["DELETE"]] as const)
      expect((await stranger(method, path, patch)).status).toBe(404);
    const listed = await stranger.get(`/stores/reviews?storeId=${storeId}`);
    expect(listed.map((one: { id: string }) => one.id)).not.toContain(id);
    const status = async (as: Caller, named: string) =>
      (await as("POST", "/stores/reviews", { artifactId: named, rating: 4 })).status;
    expect(await status(stranger, artifactId)).toBe(404);
    const draft = await call.post("/stores/artifacts", { kind: "form", title: "f" });
    expect(await status(call, draft.id)).toBe(409);
  });
});
