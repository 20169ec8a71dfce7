import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { presetSchema } from "../../src/verify/presets.ts";
import { startHookServer } from "../support/hook-server.ts";
import { opened } from "../support/opened.ts";

const acme = presetSchema.parse({
  preset: "acme",
  title: "Acme",
  description: "What Acme sends.",
  documentationUrl: "https://acme.example/webhooks",
  sample: { headers: { "content-type": "application/json" }, body: "{}" },
  secret: { label: "Signing secret", hint: "In its settings." },
  verification: { scheme: "hmac", name: "X-Acme-Signature" },
  handshakes: [{ title: "Ping", when: { method: "GET" }, requireVerified: false, respond: { body: "pong" } }],
  readAs: "application/json",
  typePath: "$headers['x-acme-event']",
  idPath: "$.id",
  itemsPath: "$.items",
  onConflict: "duplicate",
});

const worded = { ...acme, answer: { body: "[accepted]", contentType: "text/plain" } } as const;

const server = opened(() =>
  startHookServer({
    presets: new Map([
      ["acme", acme],
      ["worded", worded],
    ]),
  }),
);

const secrets = [{ value: "k" }];
const sign = (body: string): string => createHmac("sha256", "k").update(body).digest("hex");
async function send(id: string, items: readonly object[], type = "push", more: Record<string, string> = {}) {
  const body = JSON.stringify({ items });
  const headers = {
    "content-type": "text/plain",
    "x-acme-signature": sign(body),
    "x-acme-event": type,
    ...more,
  };
  const { status, text } = await server.send(id, { body, headers });
  return { status, ...JSON.parse(text) };
}

describe("a channel with a provider preset", () => {
  it("rejects deliveries until its secret is set, and then publishes all signed deliveries", async () => {
    const { id, appId, ...channel } = await server.open({ preset: "acme" }, []);
    expect(channel).toMatchObject({
      state: "needsSetup",
      events: [{ type: "received", typePath: null }],
      config: { preset: "acme", verification: { scheme: "preset" }, dedupe: { onConflict: "duplicate" } },
    });
    expect((await send(id, [{ id: 1 }])).status).toBe(401);
    const path = `/apps/${appId}/channels/${id}`;
    const body = await server.spine.api.call.put(path, { config: { secrets } });
    expect([body.state, body.events, body.config.handshakes]).toEqual(["active", channel.events, undefined]);
    const { events } = await send(id, [{ id: 1 }, { id: 2 }]);
    expect(events).toMatchObject([
      { id: "1", type: "received", status: "published" },
      { id: "2", type: "received", status: "published" },
    ]);
    expect((await send(id, [{ id: 1, changed: true }])).duplicates).toBe(1);
    expect(await server.send(id, { method: "GET" })).toMatchObject({ status: 200, text: "pong" });
  });

  it("reads event type and id from the preset's paths, unless an event definition has its own paths", async () => {
    const { id } = await server.open({ preset: "acme", secrets }, [
      { type: "push" },
      { type: "all", typePath: null, idPath: null },
      { type: "own", typePath: "$.kind", idPath: "$.key" },
    ]);
    const typesOf = async (item: object, type: string) =>
      (await send(id, [item], type)).events.map((event: { type: string; id: string }) => [
        event.type,
        event.id,
      ]);
    expect(await typesOf({ id: "a" }, "push")).toEqual([
      ["push", "a"],
      ["all", expect.stringMatching(/^evt_/)],
    ]);
    expect(await typesOf({ id: "b", kind: "own", key: "c" }, "pull")).toEqual([
      ["all", expect.stringMatching(/^evt_/)],
      ["own", "c"],
    ]);
  });

  it("uses its own settings instead of the preset's where both exist", async () => {
    const own = { itemsPath: "$.items[0].parts", dedupe: { onConflict: "publish" }, handshakes: [] };
    const { id, config } = await server.open({ preset: "acme", secrets, ...own }, [{ type: "push" }]);
    expect(config).toMatchObject(own);
    expect((await send(id, [{ parts: [{ id: 1 }, { id: 1, b: 1 }] }])).published).toBe(2);
    const { status, headers } = await server.send(id, { method: "GET" });
    expect([status, headers.get("allow")]).toEqual([405, "POST"]);
  });

  it("responds to an accepted delivery with an empty body if the setting `answer` is `empty`", async () => {
    const { id } = await server.open({ preset: "acme", secrets, answer: "empty" }, [{ type: "push" }]);
    const body = JSON.stringify({ items: [{ id: "empty" }] });
    const headers = { "x-acme-signature": sign(body), "x-acme-event": "push" };
    const { status, text } = await server.send(id, { body, headers });
    expect([status, text]).toEqual([200, ""]);
    expect((await server.send(id, { body: `${body} `, headers })).status).toBe(401);
  });

  it("responds to accepted deliveries and their duplicates with the preset's text, unless the channel has its own", async () => {
    const [one, two] = [
      { preset: "worded", secrets },
      { preset: "worded", secrets, answer: { body: '{"ok":"é"}', contentType: "application/json" } },
    ];
    const body = JSON.stringify({ items: [{ id: "worded" }] });
    const headers = { "x-acme-signature": sign(body), "x-acme-event": "push" };
    for (const [config, text, type] of [
      [one, "[accepted]", "text/plain; charset=utf-8"],
      [two, '{"ok":"é"}', "application/json; charset=utf-8"],
    ] as const) {
      const { id } = await server.open(config, [{ type: "push" }]);
      for (let time = 0; time < 2; time++) {
        const sent = await server.send(id, { body, headers });
        expect([sent.status, sent.text, sent.headers.get("content-type")]).toEqual([200, text, type]);
        // The console has the same origin, so a browser must not run a text that a channel's owner chose.
        expect(sent.headers.get("content-security-policy")).toContain("sandbox");
      }
      expect((await server.send(id, { body: `${body} `, headers })).text).toContain("unauthenticated");
    }
  });

  it.each([
    [{ body: "" }, "answer.body"],
    [{ body: "x".repeat(1025) }, "answer.body"],
    [{ body: "OK", contentType: "text/html" }, "answer"],
    ["ok", "answer"],
  ])("cannot be created with the answer %j", async (answer, path) => {
    const channels = [{ uid: "c", kind: "webhook", config: { answer } }];
    const { status, body } = await server.spine.api.call("POST", "/blueprints", { title: "x", channels });
    expect([status, body.details.map((one: { path: string }) => one.path)]).toEqual([
      400,
      [`channels[0].config.${path}`],
    ]);
  });

  it("cannot be created if the preset is unknown or the verification settings are invalid", async () => {
    const findPaths = async (config: object) => {
      const channels = [{ uid: "c", kind: "webhook", config }];
      const { status, body } = await server.spine.api.call("POST", "/blueprints", { title: "x", channels });
      return [status, body.details];
    };
    expect(await findPaths({ preset: "acmme" })).toEqual([
      400,
      [{ path: "channels[0].config.preset", message: expect.stringContaining("acme") }],
    ]);
    expect(await findPaths({ verification: { scheme: "preset" } })).toEqual([
      400,
      [{ path: "channels[0].config.preset", message: expect.any(String) }],
    ]);
    const wrong = { preset: "acme", verification: { scheme: "preset", toleranceSeconds: 5 } };
    expect(await findPaths(wrong)).toEqual([
      400,
      [{ path: "channels[0].config.verification.toleranceSeconds", message: expect.any(String) }],
    ]);
  });

  it("requires verification, and its preset cannot be removed without choosing another verification", async () => {
    const { id, appId } = await server.open({});
    const path = `/apps/${appId}/channels/${id}`;
    expect((await send(id, [])).status).toBe(200);
    const body = await server.spine.api.call.put(path, { config: { preset: "acme" } });
    expect([body.state, body.config.verification]).toEqual(["needsSetup", { scheme: "preset" }]);
    expect((await send(id, [])).status).toBe(401);
    expect((await server.spine.api.call("PUT", path, { config: { preset: null } })).status).toBe(400);
    const opened = { config: { preset: null, verification: { scheme: "none" } } };
    expect((await server.spine.api.call.put(path, opened)).config.verification).toEqual({
      scheme: "none",
    });
  });

  it("keeps the preset when the app is upgraded from a blueprint without verification", async () => {
    const { spine } = server;
    const app = await spine.install({ uid: "c", kind: "webhook", config: {}, events: [{ type: "push" }] });
    const [channel] = app.channels;
    await spine.api.call.put(`/apps/${app.id}/channels/${channel.id}`, {
      config: { preset: "acme", secrets },
    });
    const body = await spine.api.call.post(`/apps/${app.id}/upgrade`);
    expect([body.channels[0].config.preset, body.channels[0].state]).toEqual(["acme", "active"]);
    expect((await server.send(channel.id, { body: "{}" })).status).toBe(401);
  });
});

describe("a channel that deduplicates by the signed bytes", () => {
  it("quarantines a replay of the signed bytes with another event id, and a user can still publish it", async () => {
    const verification = { scheme: "hmac", name: "x-acme-signature", bindDedupe: "signedBytes" };
    const definition = { type: "push", idPath: "$headers['x-id']" };
    const open = (settings: object) => server.open({ verification: settings, secrets }, [definition]);
    const { id, appId } = await open(verification);
    const first = await send(id, [{ a: 1 }], "push", { "x-id": "1" });
    const replayed = await send(id, [{ a: 1 }], "push", { "x-id": "2" });
    expect([first.events[0].id, first.published]).toEqual(["1", 1]);
    expect(replayed).toMatchObject({ published: 0, duplicates: 0, quarantine: [{ reason: "replayed" }] });
    const again = await server.spine.api.call.post(
      `/apps/${appId}/quarantine/${replayed.quarantine[0].id}/redrive`,
    );
    expect(again).toMatchObject({ status: "released", events: [{ id: "2", status: "published" }] });
    expect((await send(id, [{ a: 1 }], "push", { "x-id": "1" })).duplicates).toBe(1);
    expect((await send(id, [{ a: 2 }], "push", { "x-id": "1" })).quarantine[0].reason).toBe("id_conflict");
    const free = await open({ ...verification, bindDedupe: "none" });
    await send(free.id, [{ a: 1 }], "push", { "x-id": "1" });
    expect((await send(free.id, [{ a: 1 }], "push", { "x-id": "2" })).published).toBe(1);
  });

  it("identifies a delivery without an id by its signed bytes", async () => {
    const verification = { scheme: "hmac", name: "x-acme-signature", bindDedupe: "signedBytes" };
    const { id } = await server.open({ verification, secrets });
    expect((await send(id, [])).published).toBe(1);
    expect((await send(id, [])).duplicates).toBe(1);
  });
});

describe("a channel that accepts deliveries only from some addresses", () => {
  it("responds to all other addresses with 401 without parsing the delivery", async () => {
    const statusOf = async (allowedAddresses: readonly string[]) =>
      (await server.send((await server.open({ allowedAddresses })).id, { body: "{" })).status;
    expect(await statusOf(["192.0.2.0/24"])).toBe(401);
    expect(await statusOf(["192.0.2.0/24", "127.0.0.0/8", "::1"])).toBe(200);
  });
});
