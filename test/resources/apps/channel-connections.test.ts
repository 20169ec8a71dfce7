import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Answer } from "../../support/api.ts";
import { startTestSpine, type TestSpine } from "../../support/spine.ts";

let spine: TestSpine;
beforeAll(async () => {
  spine = await startTestSpine();
});
afterAll(() => spine[Symbol.asyncDispose]());

const ORIGIN = "https://api.example.com";

const stream = (uid: string, connection = "required", origin = ORIGIN) => ({
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
  it("can be set and removed, which decides whether the channel is active", async () => {
    const app = await spine.install(stream("main"));
    expect(await channelOf(app.id, "main")).toMatchObject({ connectionId: null, state: "needsConnection" });
    const connectionId = await connect();
    expect((await put(app.id, "main", { connectionId })).body).toMatchObject({
      connectionId,
      state: "active",
    });
    expect((await put(app.id, "main", { title: "Other" })).body).toMatchObject({
      connectionId,
      state: "active",
    });
    expect((await put(app.id, "main", { connectionId: null })).body).toMatchObject({
      connectionId: null,
      state: "needsConnection",
    });
    const added = await spine.api.call.post(`/apps/${app.id}/channels`, {
      ...stream("second"),
      connectionId,
    });
    expect(added).toMatchObject({ connectionId, state: "active" });
  });

  it("cannot be deleted while the channel uses it", async () => {
    const app = await spine.install(stream("main"));
    const connectionId = await connect();
    await put(app.id, "main", { connectionId });
    expect((await spine.api.call("DELETE", `/connections/${connectionId}`)).status).toBe(409);
    await put(app.id, "main", { connectionId: null });
    await spine.api.call.delete(`/connections/${connectionId}`);
  });

  it("must allow the origin that the channel calls, also after a change of the URL", async () => {
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

  it("is refused on a channel that fetches nothing, or whose settings say that it has none", async () => {
    const push = { uid: "push", kind: "webhook", events: [{ type: "x" }] };
    const app = await spine.install(push, stream("none", "none"));
    const connectionId = await connect();
    expect((await put(app.id, "push", { connectionId })).status).toBe(400);
    expect((await put(app.id, "none", { connectionId })).status).toBe(400);
  });
});

describe("a subscription's connection", () => {
  it("becomes the connection of its channel; a different one is then a conflict", async () => {
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

  it("is not set on any channel if the subscription covers the whole app", async () => {
    const app = await spine.install(stream("main"));
    expect((await subscribe(app.id, "*", await connect())).status).toBe(200);
    expect(await channelOf(app.id, "main")).toMatchObject({ connectionId: null, state: "needsConnection" });
  });

  it("changes nothing if the connection or the event is unknown", async () => {
    const app = await spine.install(stream("main"));
    for (const eventUid of ["main:x", "*"])
      expect((await subscribe(app.id, eventUid, "con_nothing")).status).toBe(404);
    expect((await subscribe(app.id, "main:unknown", await connect())).status).toBe(404);
    expect(await channelOf(app.id, "main")).toMatchObject({ connectionId: null });
  });

  it("must allow the origin that the channel calls", async () => {
    const app = await spine.install(stream("main"));
    const elsewhere = await connect("https://other.example");
    expect((await subscribe(app.id, "main:x", elsewhere)).status).toBe(400);
  });

  it("is null after the connection is deleted", async () => {
    const app = await spine.install(stream("main"));
    const connectionId = await connect();
    const { id } = (await subscribe(app.id, "*", connectionId)).body;
    await spine.api.call.delete(`/connections/${connectionId}`);
    expect(await spine.api.call.get(`/apps/${app.id}/subscriptions/${id}`)).toMatchObject({
      connectionId: null,
    });
  });
});
