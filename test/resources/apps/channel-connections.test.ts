import { describe, expect, it } from "vitest";
import type { Answer } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";

const spine = opened(startTestSpine);

const ORIGIN = "https://api.example.com";

const stream = (uid: string, connection: string | undefined = "required", origin = ORIGIN) => ({
  uid,
  kind: "sse",
  config: { url: `${origin}/events`, connection },
  events: [{ type: "x" }],
});

async function connect(origin = ORIGIN): Promise<string> {
  const connection = { name: "Example", kind: "bearer", config: { token: "t" }, allowedOrigins: [origin] };
  return (await spine.api.call.post("/connections", connection)).id;
}

const channelOf = async (appId: string, uid: string) => {
  const channels = await spine.api.call.get(`/apps/${appId}/channels`);
  return channels.find((channel: { uid: string }) => channel.uid === uid);
};
const put = async (appId: string, uid: string, patch: object): Promise<Answer> =>
  spine.api.call("PUT", `/apps/${appId}/channels/${(await channelOf(appId, uid)).id}`, patch);
const subscribe = (appId: string, eventUid: string, connectionId: string): Promise<Answer> =>
  spine.api.call("POST", `/apps/${appId}/events/subscribe`, { eventUid, connectionId });

describe("a channel's connection", () => {
  it("can be set and removed, and a channel that requires a connection is active only while one is set", async () => {
    const app = await spine.install(stream("main"));
    expect(await channelOf(app.id, "main")).toMatchObject({ connectionId: null, state: "needsConnection" });
    const connectionId = await connect();
    expect((await put(app.id, "main", { connectionId })).body).toMatchObject({
      connectionId,
      state: "idle",
    });
    expect((await put(app.id, "main", { title: "Other" })).body).toMatchObject({
      connectionId,
      state: "idle",
    });
    expect((await put(app.id, "main", { connectionId: null })).body).toMatchObject({
      connectionId: null,
      state: "needsConnection",
    });
    const added = await spine.api.call.post(`/apps/${app.id}/channels`, {
      ...stream("second"),
      connectionId,
    });
    expect(added).toMatchObject({ connectionId, state: "idle" });
  });

  it("cannot be deleted while the channel uses it", async () => {
    const app = await spine.install(stream("main"));
    const connectionId = await connect();
    await put(app.id, "main", { connectionId });
    expect((await spine.api.call("DELETE", `/connections/${connectionId}`)).status).toBe(409);
    await put(app.id, "main", { connectionId: null });
    await spine.api.call.delete(`/connections/${connectionId}`);
  });

  it("must allow the origin of the channel's URL, also when that URL changes later", async () => {
    const app = await spine.install(stream("main", "optional", "https://other.example"));
    const connectionId = await connect();
    const refused = await put(app.id, "main", { connectionId });
    expect(refused.status).toBe(400);
    expect(refused.body.details).toMatchObject([{ path: "connectionId" }]);
    expect((await put(app.id, "main", { connectionId, config: { url: `${ORIGIN}/events` } })).status).toBe(
      200,
    );
    expect((await put(app.id, "main", { config: { url: "https://other.example/events" } })).status).toBe(400);
    expect((await put(app.id, "main", { config: { url: `${ORIGIN}:8443/events` } })).status).toBe(400);
    expect((await put(app.id, "main", { config: { url: `http://api.example.com/events` } })).status).toBe(
      400,
    );
  });

  it("can be set on a channel whose settings do not mention connections", async () => {
    const { connection: _, ...config } = stream("plain").config;
    const app = await spine.install({ ...stream("plain"), config });
    const connectionId = await connect();
    expect((await put(app.id, "plain", { connectionId })).body).toMatchObject({
      connectionId,
      config: { connection: "optional" },
    });
  });

  it("is rejected on a channel that receives requests, and on a channel whose settings forbid a connection", async () => {
    const push = { uid: "push", kind: "webhook", events: [{ type: "x" }] };
    const app = await spine.install(push, stream("none", "none"));
    const connectionId = await connect();
    expect((await put(app.id, "push", { connectionId })).status).toBe(400);
    expect((await put(app.id, "none", { connectionId })).status).toBe(400);
  });
});

describe("a subscription's connection", () => {
  it("becomes the connection of its channel, and a later subscription with a different connection is rejected with 409", async () => {
    const app = await spine.install(stream("main"));
    const [first, other] = [await connect(), await connect()];
    const subscribed = await subscribe(app.id, "main:x", first);
    expect(subscribed).toMatchObject({ status: 200, body: { connectionId: first } });
    expect(await channelOf(app.id, "main")).toMatchObject({ connectionId: first, state: "active" });
    expect((await subscribe(app.id, "main:*", first)).status).toBe(200);
    expect((await subscribe(app.id, "main:*", other)).status).toBe(409);
    expect(await channelOf(app.id, "main")).toMatchObject({ connectionId: first });
    const notes = await spine.api.call.get(`/audit?entityId=${encodeURIComponent(`${app.id}/main`)}`);
    expect(notes).toContainEqual(expect.objectContaining({ action: "update", fields: ["connectionId"] }));
  });

  it("is set on every channel of the app that accepts the connection, if the subscription covers the whole app", async () => {
    const app = await spine.install(
      stream("first"),
      stream("second", "optional"),
      stream("refusing", "none"),
      stream("elsewhere", "optional", "https://other.example"),
      stream("taken"),
      { uid: "push", kind: "webhook", events: [{ type: "x" }] },
    );
    const [first, other] = [await connect(), await connect()];
    await put(app.id, "taken", { connectionId: other });
    const { status, body } = await subscribe(app.id, "*", first);
    expect([status, body.connectedChannels]).toEqual([200, ["first", "second"]]);
    for (const [uid, connectionId, state] of [
      ["first", first, "active"],
      ["second", first, "active"],
      ["refusing", null, "active"],
      ["elsewhere", null, "active"],
      ["taken", other, "active"],
      ["push", null, "active"],
    ] as const)
      expect(await channelOf(app.id, uid)).toMatchObject({ uid, connectionId, state });
    expect((await subscribe(app.id, "*", first)).body.connectedChannels).toEqual(["first", "second"]);
  });

  it("is rejected if no channel of the app accepts the connection, with the reason of each channel", async () => {
    const app = await spine.install(stream("refusing", "none"), stream("taken"));
    await put(app.id, "taken", { connectionId: await connect() });
    const { status, body } = await subscribe(app.id, "*", await connect());
    expect([status, body.details]).toEqual([
      400,
      [{ path: "connectionId", message: expect.stringMatching(/refusing: .*taken: .*another connection/) }],
    ]);
    const pushed = await spine.install({ uid: "push", kind: "webhook", events: [{ type: "x" }] });
    expect((await subscribe(pushed.id, "*", await connect())).status).toBe(400);
    expect((await spine.api.call("GET", `/apps/${app.id}/subscriptions`)).body).toEqual([]);
  });

  it("is not set on the channel if the connection or the event type does not exist", async () => {
    const app = await spine.install(stream("main"));
    for (const eventUid of ["main:x", "*"])
      expect((await subscribe(app.id, eventUid, "con_nothing")).status).toBe(404);
    expect((await subscribe(app.id, "main:unknown", await connect())).status).toBe(404);
    expect(await channelOf(app.id, "main")).toMatchObject({ connectionId: null });
  });

  it("must allow the origin of the channel's URL", async () => {
    const app = await spine.install(stream("main"));
    const elsewhere = await connect("https://other.example");
    expect((await subscribe(app.id, "main:x", elsewhere)).status).toBe(400);
  });

  it("cannot be deleted while a subscription or its handler uses the connection, and the error names the subscription", async () => {
    const app = await spine.install(stream("main"));
    const [own, handlers] = [await connect(), await connect()];
    const handler = { url: `${ORIGIN}/in`, connectionId: handlers };
    const { id } = await spine.api.call.post(`/apps/${app.id}/events/subscribe`, {
      eventUid: "*",
      connectionId: own,
      handler,
    });
    await put(app.id, "main", { connectionId: null });
    const used = await spine.api.call("DELETE", `/connections/${own}`);
    expect([used.status, used.body.message]).toEqual([
      409,
      expect.stringContaining(` the subscription ${id} `),
    ]);
    const handled = await spine.api.call("DELETE", `/connections/${handlers}`);
    expect([handled.status, handled.body.message]).toEqual([
      409,
      expect.stringContaining(`the handler of the subscription ${id} `),
    ]);
    await spine.api.call.delete(`/apps/${app.id}/subscriptions/${id}`);
    for (const connectionId of [own, handlers]) await spine.api.call.delete(`/connections/${connectionId}`);
  });
});

describe("a channel that polls or streams", () => {
  it("is in state idle, with a reason, until a subscription covers the channel", async () => {
    const app = await spine.install(stream("main", "optional"), {
      ...stream("always", "optional"),
      config: { url: `${ORIGIN}/events`, run: "always" },
    });
    expect(app.channels).toMatchObject([
      { uid: "main", state: "idle", stateReason: "noSubscription" },
      { uid: "always", state: "active", stateReason: null },
    ]);
    const path = `/apps/${app.id}/channels/${(await channelOf(app.id, "main")).id}`;
    const idle = await spine.api.call("GET", path);
    expect(idle.body.state).toBe("idle");
    const source = () => spine.api.call.get(`${path}/source`);
    expect(await source()).toMatchObject({ state: "idle", stateReason: "noSubscription" });
    const { id } = await spine.api.call.post(`/apps/${app.id}/events/subscribe`, { eventUid: "main:x" });
    const known = { "if-none-match": idle.headers.get("etag") ?? "" };
    expect(await spine.api.call("GET", path, undefined, known)).toMatchObject({
      status: 200,
      body: { state: "active", stateReason: null },
    });
    expect(await source()).toMatchObject({ state: "waiting", stateReason: null });
    // The old ETag still matches because the subscription did not write to the channel.
    const match = { "if-match": idle.headers.get("etag") ?? "" };
    expect((await spine.api.call("PUT", path, { title: "x" }, match)).status).toBe(200);
    await spine.api.call.delete(`/apps/${app.id}/subscriptions/${id}`);
    expect(await channelOf(app.id, "main")).toMatchObject({ state: "idle" });
  });
});
