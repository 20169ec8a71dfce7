import { describe, expect, it } from "vitest";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);

const CHANNEL = { uid: "main", kind: "webhook", events: [{ type: "push", typePath: "$.type" }] };

describe("a blueprint", () => {
  it("is returned with every field, and with default settings filled in for its channels", async () => {
    const body = await api.call.post("/blueprints", {
      uid: "github",
      title: "GitHub",
      channels: [{ ...CHANNEL, config: { dedupe: { windowSeconds: 60 } } }],
    });
    expect(body).toEqual({
      id: expect.stringMatching(/^bp_[a-z0-9]{23}$/),
      uid: "github",
      title: "GitHub",
      description: null,
      organizationId: expect.stringMatching(/^org_/),
      channels: [
        {
          uid: "main",
          kind: "webhook",
          title: null,
          config: expect.objectContaining({
            dedupe: { windowSeconds: 60, by: "id", onConflict: "quarantine" },
            onInvalid: "quarantine",
          }),
          events: [{ type: "push", typePath: "$.type" }],
        },
      ],
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      updatedAt: body.createdAt,
    });
    expect(await api.call.get(`/blueprints/${body.id}`)).toEqual(body);
  });

  it("returns schemas with their properties in the original order, including a property named __proto__", async () => {
    const schema = '{"properties":{"__proto__":{"type":"string"},"b":{},"a":{}},"type":"object"}';
    const text = `{"title":"x","channels":[{"uid":"m","kind":"webhook","events":[{"type":"t","schema":${schema}}]}]}`;
    const { id } = await api.call.post("/blueprints", text);
    const read = await api.call.get(`/blueprints/${id}`);
    expect(JSON.stringify(read.channels[0].events[0].schema)).toBe(schema);
  });

  it("uses its id as its uid if the request gives no uid", async () => {
    const { id, uid } = await api.call.post("/blueprints", { title: "No uid" });
    expect(uid).toBe(id);
  });

  it("can have the same uid as a blueprint of another organization, but not of its own", async () => {
    const make = { uid: "twice", title: "a" };
    await api.call.post("/blueprints", make);
    expect(await api.call.expectRejection("POST", "/blueprints", make)).toEqual({
      status: 409,
      code: "conflict",
    });
    await api.as(await api.createForeignKey()).post("/blueprints", make);
  });

  it.each([
    ["channels[1].uid", { channels: [CHANNEL, CHANNEL] }],
    ["channels[0].uid", { channels: [{ ...CHANNEL, uid: "a.b" }] }],
    ["channels[0].kind", { channels: [{ ...CHANNEL, kind: "pigeon" }] }],
    [
      "channels[0].config.dedupe.windowSeconds",
      { channels: [{ ...CHANNEL, config: { dedupe: { windowSeconds: -1 } } }] },
    ],
    ["channels[0].config.dedupe.window", { channels: [{ ...CHANNEL, config: { dedupe: { window: 1 } } }] }],
    ["channels[0].config.colour", { channels: [{ ...CHANNEL, config: { colour: "red" } }] }],
    [
      "channels[0].config.secrets",
      { channels: [{ ...CHANNEL, config: { secrets: [{ value: "s3cret" }] } }] },
    ],
    ["channels[0].events[1].type", { channels: [{ ...CHANNEL, events: [{ type: "a" }, { type: "a" }] }] }],
    ["channels[0].events[0].type", { channels: [{ ...CHANNEL, events: [{ type: "*" }] }] }],
    [
      "channels[0].events[0].typePath",
      { channels: [{ ...CHANNEL, events: [{ type: "a", typePath: "nonsense" }] }] },
    ],
    ["uid", { uid: "a b" }],
  ])("is rejected if %s is invalid", async (path, input) => {
    const { status, body } = await api.call("POST", "/blueprints", { title: "x", ...input });
    expect([status, body.details?.[0]?.path]).toEqual([400, path]);
    expect(JSON.stringify(body)).not.toContain("s3cret");
  });

  it("is changed by a merge patch that merges objects, replaces arrays and clears fields with null", async () => {
    const made = await api.call.post("/blueprints", { title: "a", description: "d", channels: [CHANNEL] });
    const path = `/blueprints/${made.id}`;
    const renamed = await api.call.put(path, { title: "b", description: null });
    const { updatedAt } = renamed;
    expect(renamed).toEqual({ ...made, title: "b", description: null, updatedAt });
    expect(await api.call.put(path, { channels: [] })).toMatchObject({ channels: [] });
    const refusal = (patch: object) => api.call.expectRejection("PUT", path, patch);
    expect(await refusal({ title: null })).toMatchObject({ status: 400, paths: ["title"] });
    expect(await refusal({ channels: [{ ...CHANNEL, kind: "pigeon" }] })).toMatchObject({
      status: 400,
      paths: ["channels[0].kind"],
    });
    expect(await refusal([])).toMatchObject({ status: 400 });
  });

  it("keeps all changes if several requests change different fields concurrently", async () => {
    const { id } = await api.call.post("/blueprints", { title: "a" });
    const path = `/blueprints/${id}`;
    const patches = [{ title: "b" }, { description: "c" }, { uid: "together" }];
    await Promise.all(patches.map((patch) => api.call.put(path, patch)));
    expect(await api.call.get(path)).toMatchObject({ title: "b", description: "c", uid: "together" });
  });

  it("can be deleted without deleting the apps installed from it", async () => {
    const { id } = await api.call.post("/blueprints", { title: "a" });
    const app = await api.call.post("/apps/install", { blueprintId: id });
    expect(await api.call.delete(`/blueprints/${id}`)).toEqual({ id });
    expect((await api.call("DELETE", `/blueprints/${id}`)).status).toBe(404);
    expect(await api.call.get(`/apps/${app.id}`)).toMatchObject({ blueprintId: null });
  });
});
