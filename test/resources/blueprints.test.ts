import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApi, type TestApi } from "../support/api.ts";

let api: TestApi;
beforeAll(async () => {
  api = await createTestApi();
});
afterAll(() => api[Symbol.asyncDispose]());

const CHANNEL = { uid: "main", kind: "webhook", events: [{ type: "push", typePath: "$.type" }] };

describe("a blueprint", () => {
  it("is answered whole, with its channels' defaults filled in", async () => {
    const { status, body } = await api.call("POST", "/blueprints", {
      uid: "github",
      title: "GitHub",
      channels: [{ ...CHANNEL, config: { dedupe: { windowSeconds: 60 } } }],
    });
    expect(status).toBe(200);
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
    expect((await api.call("GET", `/blueprints/${body.id}`)).body).toEqual(body);
  });

  it("keeps what the user wrote in the user's order, names like __proto__ included", async () => {
    const schema = '{"properties":{"__proto__":{"type":"string"},"b":{},"a":{}},"type":"object"}';
    const text = `{"title":"x","channels":[{"uid":"m","kind":"webhook","events":[{"type":"t","schema":${schema}}]}]}`;
    const { status, body } = await api.call("POST", "/blueprints", text);
    expect(status).toBe(200);
    const { body: read } = await api.call("GET", `/blueprints/${body.id}`);
    expect(JSON.stringify(read.channels[0].events[0].schema)).toBe(schema);
  });

  it("takes its own id as uid where none is given", async () => {
    const { body } = await api.call("POST", "/blueprints", { title: "No uid" });
    expect(body.uid).toBe(body.id);
  });

  it("has a uid of its own in its organization, not beyond", async () => {
    const make = { uid: "twice", title: "a" };
    expect((await api.call("POST", "/blueprints", make)).status).toBe(200);
    const again = await api.call("POST", "/blueprints", make);
    expect([again.status, again.body.code]).toEqual([409, "conflict"]);
    expect((await api.as(await api.strangerKey())("POST", "/blueprints", make)).status).toBe(200);
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
  ])("is refused when %s does not fit", async (path, input) => {
    const { status, body } = await api.call("POST", "/blueprints", { title: "x", ...input });
    expect([status, body.details?.[0]?.path]).toEqual([400, path]);
    expect(JSON.stringify(body)).not.toContain("s3cret");
  });

  it("is changed by merge patch: objects merge, arrays replace, null clears", async () => {
    const made = await api.call("POST", "/blueprints", { title: "a", description: "d", channels: [CHANNEL] });
    const path = `/blueprints/${made.body.id}`;
    const renamed = await api.call("PUT", path, { title: "b", description: null });
    expect(renamed.body).toEqual({
      ...made.body,
      title: "b",
      description: null,
      updatedAt: renamed.body.updatedAt,
    });
    const emptied = await api.call("PUT", path, { channels: [] });
    expect(emptied.body.channels).toEqual([]);
    const untitled = await api.call("PUT", path, { title: null });
    expect([untitled.status, untitled.body.details[0].path]).toEqual([400, "title"]);
    const bad = await api.call("PUT", path, { channels: [{ ...CHANNEL, kind: "pigeon" }] });
    expect([bad.status, bad.body.details[0].path]).toEqual([400, "channels[0].kind"]);
    expect((await api.call("PUT", path, [])).status).toBe(400);
    expect((await api.call("PUT", path, { id: "other" })).status).toBe(400);
  });

  it("loses none of the changes that are made at the same time", async () => {
    const { body } = await api.call("POST", "/blueprints", { title: "a" });
    const path = `/blueprints/${body.id}`;
    await Promise.all([
      api.call("PUT", path, { title: "b" }),
      api.call("PUT", path, { description: "c" }),
      api.call("PUT", path, { uid: "together" }),
    ]);
    expect((await api.call("GET", path)).body).toMatchObject({
      title: "b",
      description: "c",
      uid: "together",
    });
  });

  it("is deleted; its apps stay", async () => {
    const { body } = await api.call("POST", "/blueprints", { title: "a" });
    const app = (await api.call("POST", "/apps/install", { blueprintId: body.id })).body;
    expect((await api.call("DELETE", `/blueprints/${body.id}`)).body).toEqual({ id: body.id });
    expect((await api.call("DELETE", `/blueprints/${body.id}`)).status).toBe(404);
    expect((await api.call("GET", `/apps/${app.id}`)).body.blueprintId).toBeNull();
  });
});
