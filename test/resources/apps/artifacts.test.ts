import { beforeAll, describe, expect, it } from "vitest";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

let blueprintId: string;
const api = opened(createTestApi);
beforeAll(async () => {
  const channels = [{ uid: "in", kind: "webhook", events: [{ type: "a" }] }];
  blueprintId = (await api.call.post("/blueprints", { title: "x", uid: "x", channels })).id;
});

const create = (input: object) => api.call.post("/stores/artifacts", input);

describe("an artifact", () => {
  it("can be created, read, listed, changed and deleted", async () => {
    const made = await create({ kind: "blueprint", title: "GitHub", blueprintId });
    expect(made).toEqual({
      id: expect.stringMatching(/^art_/),
      organizationId: expect.stringMatching(/^org_/),
      kind: "blueprint",
      title: "GitHub",
      description: null,
      blueprintId,
      storeId: null,
      categoryId: null,
      status: "draft",
      pricingPlans: [],
      approvedVersion: null,
      awaitsApproval: false,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    });
    const path = `/stores/artifacts/${made.id}`;
    expect(await api.call.get(path)).toEqual(made);
    const changed = await api.call.put(path, { title: "Hub" });
    expect(changed).toMatchObject({ title: "Hub", storeId: null, blueprintId });
    const listed = await api.call("GET", "/stores/artifacts");
    expect([listed.headers.get("x-total-count"), listed.body]).toEqual(["1", [changed]]);
    expect(await api.call.delete(path)).toEqual({ id: made.id });
    expect((await api.call("GET", path)).status).toBe(404);
  });

  it("is rejected if its blueprint does not fit its kind, its category has no store, or the request sets a status", async () => {
    const refusal = (input: object) =>
      api.call.expectRejection("POST", "/stores/artifacts", {
        kind: "blueprint",
        title: "x",
        blueprintId,
        ...input,
      });
    for (const [path, input] of [
      ["blueprintId", { blueprintId: null }],
      ["blueprintId", { kind: "form" }],
      ["categoryId", { categoryId: "cat_x" }],
      ["status", { status: "published" }],
    ] as const)
      expect(await refusal(input)).toMatchObject({ status: 400, paths: [path] });
  });
});

describe("installing an artifact", () => {
  it("installs the blueprint that the artifact refers to", async () => {
    const { id } = await create({ kind: "blueprint", title: "other title", blueprintId });
    expect(await api.call.post("/apps/install", { artifactId: id })).toMatchObject({
      blueprintId,
      title: "x",
      channels: [{ uid: "in" }],
    });
  });

  it("is rejected if the artifact is not a blueprint, or if the request also names a blueprint", async () => {
    const { id: artifactId } = await create({ kind: "form", title: "x" });
    const refusal = (input: object) => api.call.expectRejection("POST", "/apps/install", input);
    expect(await refusal({ artifactId })).toMatchObject({ status: 400, paths: ["artifactId"] });
    expect(await refusal({ artifactId, blueprintId })).toMatchObject({ status: 400 });
  });

  it("responds with 404 to a malformed artifact id, and to an artifact whose blueprint was deleted", async () => {
    const install = (artifactId: string) => api.call("POST", "/apps/install", { artifactId });
    for (const artifactId of ["art_x", "", "%00"])
      expect([artifactId, (await install(artifactId)).status]).toEqual([artifactId, 404]);
    const { id: deleted } = await api.call.post("/blueprints", { title: "deleted" });
    const orphan = await create({ kind: "blueprint", title: "x", blueprintId: deleted });
    await api.call.delete(`/blueprints/${deleted}`);
    expect((await install(orphan.id)).status).toBe(404);
    expect(await api.call.get(`/stores/artifacts/${orphan.id}`)).toMatchObject({ blueprintId: null });
  });
});

describe("an approved artifact", () => {
  const verified = {
    uid: "in",
    kind: "webhook",
    events: [{ type: "a" }],
    config: {
      verification: { scheme: "hmac", algorithm: "sha256", encoding: "hex", in: "header", name: "x" },
    },
  };
  const open = { uid: "open", kind: "webhook", events: [{ type: "b" }] };
  const uidsOf = (app: { channels: { uid: string }[] }) => app.channels.map(({ uid }) => uid);

  /** Submits an author's artifact to a public store that requires approval. A third organization, the buyer, may install it. */
  async function submitted(store: object = {}) {
    const options = { name: "s", isPublic: true, allowSubmissions: true, requireApproval: true, ...store };
    const { id: storeId } = await api.call.post("/stores", options);
    const author = api.as(await api.createForeignKey());
    const buyer = api.as(await api.createForeignKey());
    const blueprint = await author.post("/blueprints", { title: "x", channels: [verified] });
    const offer = { kind: "blueprint", title: "x", blueprintId: blueprint.id, storeId };
    const { id } = await author.post("/stores/artifacts", offer);
    const decide = (decision: string, body: object = {}) =>
      api.call("POST", `/stores/artifacts/${id}/${decision}`, body);
    const change = () => author.put(`/blueprints/${blueprint.id}`, { title: "y", channels: [open] });
    const shown = () => buyer.get(`/stores/artifacts/${id}`);
    return { storeId, author, buyer, blueprint, id, decide, change, shown };
  }

  it("installs and upgrades apps from the approved blueprint version until the store approves a newer version", async () => {
    const { storeId, author, buyer, id, decide, change, shown } = await submitted();
    expect((await decide("approve", { version: 1 })).body).toMatchObject({
      status: "published",
      approvedVersion: 1,
      awaitsApproval: false,
    });
    const app = await buyer.post("/apps/install", { artifactId: id });
    expect([app.artifactId, uidsOf(app)]).toEqual([id, ["in"]]);

    await change();
    expect(await shown()).toMatchObject({ status: "published", approvedVersion: 1, awaitsApproval: true });
    const awaiting = await api.call.get(`/stores/artifacts?storeId=${storeId}&awaitsApproval=true`);
    expect(awaiting.map((one: { id: string }) => one.id)).toEqual([id]);
    expect(await buyer.post("/apps/install", { artifactId: id })).toMatchObject({ title: "x" });
    const upgraded = await buyer.post(`/apps/${app.id}/upgrade`, { removeMissing: true });
    expect([uidsOf(upgraded), upgraded.added, upgraded.removed]).toEqual([["in"], [], []]);
    // The author owns the blueprint and installs its current version without approval.
    expect(uidsOf(await author.post("/apps/install", { artifactId: id }))).toEqual(["open"]);

    expect((await decide("approve", { version: 1 })).status).toBe(409);
    expect((await decide("approve", { version: 2 })).body).toMatchObject({ approvedVersion: 2 });
    expect((await decide("approve")).status).toBe(409);
    expect(await api.call.get(`/stores/artifacts?storeId=${storeId}&awaitsApproval=true`)).toEqual([]);
    expect(uidsOf(await buyer.post("/apps/install", { artifactId: id }))).toEqual(["open"]);
    expect((await buyer.post(`/apps/${app.id}/upgrade`)).added).toEqual(["open"]);
  });

  it("shows its blueprint only to the author's organization and the store's organization", async () => {
    const { author, buyer, id, change } = await submitted();
    const path = `/stores/artifacts/${id}/blueprint`;
    expect(await api.call.get(path)).toMatchObject({ version: 1, title: "x", channels: [{ uid: "in" }] });
    await change();
    expect(await author.get(path)).toMatchObject({ version: 2, channels: [{ uid: "open" }] });
    expect((await buyer("GET", path)).status).toBe(404);
  });

  it("remains the source of an app's upgrades, even if another artifact publishes the same blueprint", async () => {
    const { author, buyer, blueprint, id, decide, change } = await submitted();
    await decide("approve");
    const app = await buyer.post("/apps/install", { artifactId: id });
    await change();
    const own = await author.post("/stores", { name: "own", isPublic: true });
    const offer = { kind: "blueprint", title: "x", blueprintId: blueprint.id, storeId: own.id };
    expect(await author.post("/stores/artifacts", offer)).toMatchObject({ status: "published" });
    expect((await buyer.post(`/apps/${app.id}/upgrade`)).added).toEqual([]);
    await author.delete(`/stores/artifacts/${id}`);
    expect((await buyer("POST", `/apps/${app.id}/upgrade`)).status).toBe(409);
  });

  it("without required approval installs the current blueprint version, and keeps installing that version once its store requires approval", async () => {
    const { storeId, buyer, id, change } = await submitted({ requireApproval: false });
    await change();
    expect(uidsOf(await buyer.post("/apps/install", { artifactId: id }))).toEqual(["open"]);
    await api.call.put(`/stores/${storeId}`, { id: storeId, requireApproval: true });
    const { blueprintId: named, organizationId } = await buyer.get(`/stores/artifacts/${id}`);
    expect(organizationId).not.toBe((await api.call.get("/organizations"))[0].id);
    await api.database.db
      .updateTable("blueprints")
      .set({ channels: "[]", version: 3 })
      .where("id", "=", named)
      .execute();
    expect(uidsOf(await buyer.post("/apps/install", { artifactId: id }))).toEqual(["open"]);
    expect(await buyer.get(`/stores/artifacts/${id}`)).toMatchObject({
      approvedVersion: 2,
      awaitsApproval: true,
    });
  });

  it("needs a new approval when its blueprintId changes", async () => {
    const { author, buyer, id, decide } = await submitted();
    await decide("approve");
    const other = await author.post("/blueprints", { title: "z", channels: [open] });
    const changed = await author.put(`/stores/artifacts/${id}`, { blueprintId: other.id });
    expect(changed).toMatchObject({ status: "pending", approvedVersion: null, awaitsApproval: true });
    expect((await buyer("POST", "/apps/install", { artifactId: id })).status).not.toBe(200);
    await decide("approve");
    expect(uidsOf(await buyer.post("/apps/install", { artifactId: id }))).toEqual(["open"]);
  });
});
