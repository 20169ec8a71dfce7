import { describe, expect, it } from "vitest";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);

const CHANNEL = {
  uid: "main",
  kind: "webhook",
  config: { preset: "slack" },
  events: [{ type: "message", typePath: null, idPath: "$.event_id" }],
};
const SECRET = "8f742231b10e8888abcd99yyyzzz85a5";

async function givenBlueprint(channels: readonly object[] = [CHANNEL]): Promise<string> {
  return (await api.call.post("/blueprints", { title: "Slack", channels })).id;
}

async function givenIntake(more: object = {}): Promise<string> {
  const id = await givenBlueprint();
  const config = { secrets: [{ value: SECRET }] };
  await api.call.put(`/blueprints/${id}/intake`, {
    channel: "main",
    routeBy: ["$.team_id"],
    config,
    ...more,
  });
  return id;
}

const reject = (id: string, body: object) =>
  api.call.expectRejection("PUT", `/blueprints/${id}/intake`, body);

describe("the intake of a blueprint", () => {
  it("starts from the config of the blueprint's channel, and never returns its secrets", async () => {
    const id = await givenBlueprint();
    const made = await api.call.put(`/blueprints/${id}/intake`, {
      channel: "main",
      routeBy: ["$.authorizations[0].team_id", "$.team_id"],
    });
    expect(made).toMatchObject({
      blueprintId: id,
      url: expect.stringMatching(/\/hooks\/ch_/),
      channel: "main",
      routeBy: ["$.authorizations[0].team_id", "$.team_id"],
      trustUnsigned: false,
      state: "needsSetup",
      awaitsApproval: false,
      config: { preset: "slack", verification: { scheme: "preset" }, deliveryRecords: false },
    });
    const config = { secrets: [{ value: SECRET }] };
    const ready = await api.call.put(`/blueprints/${id}/intake`, { config });
    expect(ready).toMatchObject({ ...made, state: "active", updatedAt: expect.any(String) });
    expect(JSON.stringify(ready)).not.toContain(SECRET);
    expect(await api.call.get(`/blueprints/${id}/intake`)).toEqual(ready);
  });

  it("accepts the settings that presets declare", async () => {
    const presets = await api.call.get("/presets?limit=200");
    const declared = presets.filter(({ intake }: { readonly intake?: object }) => intake !== undefined);
    const channelOf = ({ preset }: { readonly preset: string }) => ({
      uid: preset,
      kind: "webhook",
      config: { preset },
      events: [],
    });
    const id = await givenBlueprint(declared.map(channelOf));
    for (const { preset, intake } of declared) {
      const { routeBy, itemsPath, trustUnsigned } = intake;
      const made = await api.call.put(`/blueprints/${id}/intake`, {
        channel: preset,
        routeBy,
        trustUnsigned: trustUnsigned === true,
        config: {
          preset,
          itemsPath: itemsPath ?? null,
          ...(trustUnsigned && { verification: { scheme: "preset", bindDedupe: "signedBytes" } }),
        },
      });
      expect(made).toMatchObject({ channel: preset, routeBy });
      await api.call.delete(`/blueprints/${id}/intake`);
    }
  });

  it("is a new version of its blueprint with each change", async () => {
    const id = await givenBlueprint();
    const tag = async () => (await api.call("GET", `/blueprints/${id}`)).headers.get("etag");
    const before = await tag();
    await api.call.put(`/blueprints/${id}/intake`, { channel: "main", routeBy: ["$.team_id"] });
    expect(await tag()).not.toBe(before);
  });

  it("rejects settings with which one install could receive the events of another", async () => {
    const id = await givenBlueprint([
      CHANNEL,
      { uid: "open", kind: "webhook", events: [{ type: "x" }] },
      { uid: "list", kind: "webhook", config: { preset: "facebook" }, events: [] },
      { uid: "polled", kind: "sse", config: { url: "https://example.com/events" }, events: [{ type: "x" }] },
    ]);
    const routeBy = ["$.team_id"];
    const wrong = (paths: readonly string[]) => ({ status: 400, code: "invalid_parameters", paths });
    expect(await reject(id, { channel: "none", routeBy })).toEqual(wrong(["channel"]));
    expect(await reject(id, { channel: "polled", routeBy })).toEqual(wrong(["channel"]));
    expect(await reject(id, { channel: "open", routeBy })).toEqual(wrong(["config.verification.scheme"]));
    expect(await reject(id, { channel: "main", routeBy, config: { shadow: true } })).toEqual(
      wrong(["config.shadow", "routeBy[0]"]),
    );
    expect(await reject(id, { channel: "list", routeBy: ["$.id"] })).toEqual(wrong(["config.itemsPath"]));
    expect(
      await reject(id, { channel: "main", routeBy: ["$.a", "$headers['x-team']", "$query.team"] }),
    ).toEqual(wrong(["routeBy[1]", "routeBy[2]"]));
    expect(await reject(id, { channel: "main", routeBy: ["$["] })).toEqual(wrong(["routeBy[0]"]));
    expect(
      await reject(id, { channel: "main", routeBy: ["$headers['x-team']"], trustUnsigned: true }),
    ).toEqual(wrong(["trustUnsigned"]));
    const bound = { verification: { scheme: "preset", bindDedupe: "signedBytes" } };
    const trusting = { channel: "main", routeBy: ["$headers['x-team']"], trustUnsigned: true, config: bound };
    expect(await api.call.put(`/blueprints/${id}/intake`, trusting)).toMatchObject({ trustUnsigned: true });
  });

  it("can route by a header that the verification signs", async () => {
    const id = await givenBlueprint();
    const routeBy = ["$headers['X-Slack-Request-Timestamp']"];
    expect(await api.call.put(`/blueprints/${id}/intake`, { channel: "main", routeBy })).toMatchObject({
      routeBy,
    });
  });

  it("is paused, resumed and rotated, and is deleted alone or with its blueprint", async () => {
    const id = await givenIntake();
    const { url } = await api.call.get(`/blueprints/${id}/intake`);
    expect(await api.call.post(`/blueprints/${id}/intake/pause`)).toMatchObject({ state: "paused", url });
    expect(await api.call.post(`/blueprints/${id}/intake/resume`)).toMatchObject({ state: "active", url });
    const rotated = await api.call.post(`/blueprints/${id}/intake/rotate`, { graceSeconds: 0 });
    expect(rotated.url).not.toBe(url);
    await api.call.delete(`/blueprints/${id}/intake`);
    expect(await api.call.expectRejection("GET", `/blueprints/${id}/intake`)).toMatchObject({ status: 404 });
    const other = await givenIntake();
    await api.call.delete(`/blueprints/${other}`);
    expect(await api.call.expectRejection("GET", `/blueprints/${other}/intake`)).toMatchObject({
      status: 404,
    });
  });

  it("belongs to the blueprint's organization, and keeps the channel that it routes to", async () => {
    const id = await givenIntake();
    const foreign = api.as(await api.createForeignKey());
    expect(await foreign.expectRejection("GET", `/blueprints/${id}/intake`)).toMatchObject({ status: 404 });
    expect(await foreign.expectRejection("GET", `/blueprints/${id}/installs`)).toMatchObject({ status: 404 });
    expect(await api.call.expectRejection("PUT", `/blueprints/${id}`, { channels: [] })).toEqual({
      status: 400,
      code: "invalid_parameters",
      paths: ["channels"],
    });
    const reader = api.as(await api.keyWith("blueprints.read"));
    expect(await reader.get(`/blueprints/${id}/intake`)).toMatchObject({ url: null });
  });
});

describe("the route keys of an install", () => {
  it("are set by the blueprint's owner, and belong to one install at a time", async () => {
    const id = await givenIntake();
    const [first, second] = [
      await api.call.post("/apps/install", { blueprintId: id }),
      await api.call.post("/apps/install", { blueprintId: id }),
    ];
    const keysPath = (appId: string) => `/blueprints/${id}/installs/${appId}/route-keys`;
    expect(await api.call.put(keysPath(first.id), { keys: ["T1", "T2"] })).toMatchObject({
      appId: first.id,
      organizationId: first.organizationId,
      routeKeys: [{ key: "T1" }, { key: "T2" }],
    });
    expect(await api.call.expectRejection("PUT", keysPath(second.id), { keys: ["T3", "T2"] })).toMatchObject({
      status: 409,
    });
    await api.call.put(keysPath(first.id), { keys: ["T1"] });
    await api.call.put(keysPath(second.id), { keys: ["T3", "T2"] });
    const items = await api.call.get(`/blueprints/${id}/installs`);
    expect(
      items.map(({ routeKeys }: { routeKeys: { key: string }[] }) => routeKeys.map(({ key }) => key)),
    ).toEqual([["T1"], ["T2", "T3"]]);
    const outsider = await api.call.post("/apps/install", { blueprintId: await givenBlueprint() });
    expect(await api.call.expectRejection("PUT", keysPath(outsider.id), { keys: [] })).toMatchObject({
      status: 404,
    });
    await api.call.delete(`/apps/${first.id}`);
    await api.call.put(keysPath(second.id), { keys: ["T1"] });
  });
});

describe("an intake of a blueprint that a store must approve", () => {
  it("keeps its approved settings until the store approves the new ones, except for secrets", async () => {
    const provider = api.as(await api.createForeignKey());
    const { id } = await provider.post("/blueprints", { title: "Slack", channels: [CHANNEL] });
    const store = await api.call.post("/stores", {
      name: "Approving",
      isPublic: true,
      allowSubmissions: true,
      requireApproval: true,
    });
    const artifact = await provider.post("/stores/artifacts", {
      kind: "blueprint",
      title: "Slack",
      blueprintId: id,
      storeId: store.id,
    });
    const approve = () => api.call.post(`/stores/artifacts/${artifact.id}/approve`);
    const running = async () => {
      const row = await api.database.db
        .selectFrom("channels")
        .selectAll()
        .where("appId", "=", id)
        .executeTakeFirstOrThrow();
      return { state: row.state, routeBy: row.routing?.routeBy };
    };
    await approve();
    const config = { secrets: [{ value: SECRET }] };
    const made = await provider.put(`/blueprints/${id}/intake`, {
      channel: "main",
      routeBy: ["$.a"],
      config,
    });
    expect(made).toMatchObject({ awaitsApproval: true, state: "paused" });
    expect(await provider.expectRejection("POST", `/blueprints/${id}/intake/resume`, {})).toMatchObject({
      status: 409,
    });
    expect(await api.call.get(`/stores/artifacts/${artifact.id}/blueprint`)).toMatchObject({
      intake: { routeBy: ["$.a"] },
    });
    await approve();
    expect(await provider.get(`/blueprints/${id}/intake`)).toMatchObject({ awaitsApproval: false });
    expect(await running()).toEqual({ state: "active", routeBy: ["$.a"] });
    const changed = await provider.put(`/blueprints/${id}/intake`, { routeBy: ["$.b"] });
    expect(changed).toMatchObject({ awaitsApproval: true, routeBy: ["$.b"] });
    expect(await running()).toEqual({ state: "active", routeBy: ["$.a"] });
    await approve();
    expect(await running()).toEqual({ state: "active", routeBy: ["$.b"] });
  });
});
