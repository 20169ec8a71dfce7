import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Answer } from "../support/api.ts";
import { startTestSpine, type TestSpine } from "../support/spine.ts";

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

const connect = async (call = spine.api.call, origin = ORIGIN): Promise<string> =>
  (
    await call("POST", "/connections", {
      name: "Example",
      kind: "bearer",
      config: { token: "t" },
      allowedOrigins: [origin],
    })
  ).body.id;

const channelOf = async (appId: string, uid: string) => {
  const { body } = await spine.api.call("GET", `/apps/${appId}/channels`);
  return body.find((channel: { uid: string }) => channel.uid === uid);
};
const put = async (appId: string, uid: string, patch: object): Promise<Answer> =>
  spine.api.call("PUT", `/apps/${appId}/channels/${(await channelOf(appId, uid)).id}`, patch);
const subscribe = (appId: string, eventUid: string, connectionId: string): Promise<Answer> =>
  spine.api.call("POST", `/apps/${appId}/events/subscribe`, { eventUid, connectionId });

describe("a channel's connection", () => {
  it("is set and taken away by the API, and decides whether the channel is ready", async () => {
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
    const added = await spine.api.call("POST", `/apps/${app.id}/channels`, {
      ...stream("second"),
      connectionId,
    });
    expect(added.body).toMatchObject({ connectionId, state: "active" });
  });

  it("that is in use is not deleted", async () => {
    const app = await spine.install(stream("main"));
    const connectionId = await connect();
    await put(app.id, "main", { connectionId });
    expect((await spine.api.call("DELETE", `/connections/${connectionId}`)).status).toBe(409);
    await put(app.id, "main", { connectionId: null });
    expect((await spine.api.call("DELETE", `/connections/${connectionId}`)).status).toBe(200);
  });

  it("must be allowed where the channel calls, also when the channel is pointed elsewhere", async () => {
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

  it("is none where nothing is fetched, where settings say so, and where it is another organization's", async () => {
    const push = { uid: "push", kind: "webhook", events: [{ type: "x" }] };
    const app = await spine.install(push, stream("none", "none"), stream("main"));
    const connectionId = await connect();
    expect((await put(app.id, "push", { connectionId })).status).toBe(400);
    expect((await put(app.id, "none", { connectionId })).status).toBe(400);
    const strangers = await connect(spine.api.as(await spine.api.strangerKey()));
    expect((await put(app.id, "main", { connectionId: strangers })).status).toBe(404);
    expect((await put(app.id, "main", { connectionId: "con_nothing" })).status).toBe(404);
    const body = { ...stream("second"), connectionId: strangers };
    expect((await spine.api.call("POST", `/apps/${app.id}/channels`, body)).status).toBe(404);
  });
});

describe("a subscription's connection", () => {
  it("is set on the channel by the first, and another one is a conflict", async () => {
    const app = await spine.install(stream("main"));
    const [first, other] = [await connect(), await connect()];
    const subscribed = await subscribe(app.id, "main:x", first);
    expect(subscribed).toMatchObject({ status: 200, body: { connectionId: first } });
    expect(await channelOf(app.id, "main")).toMatchObject({ connectionId: first, state: "active" });
    expect((await subscribe(app.id, "main:*", first)).status).toBe(200);
    expect((await subscribe(app.id, "main:*", other)).status).toBe(409);
    expect(await channelOf(app.id, "main")).toMatchObject({ connectionId: first });
    const { body } = await spine.api.call("GET", `/audit?entityId=${encodeURIComponent(`${app.id}/main`)}`);
    expect(body).toContainEqual(expect.objectContaining({ action: "update", fields: ["connectionId"] }));
  });

  it("is set on no channel by one that covers all of the app", async () => {
    const app = await spine.install(stream("main"));
    expect((await subscribe(app.id, "*", await connect())).status).toBe(200);
    expect(await channelOf(app.id, "main")).toMatchObject({ connectionId: null, state: "needsConnection" });
  });

  it("that is not there, or another organization's, is a 404 and sets nothing", async () => {
    const app = await spine.install(stream("main"));
    const strangers = await connect(spine.api.as(await spine.api.strangerKey()));
    for (const eventUid of ["main:x", "*"]) {
      expect((await subscribe(app.id, eventUid, strangers)).status).toBe(404);
      expect((await subscribe(app.id, eventUid, "con_nothing")).status).toBe(404);
    }
    expect((await subscribe(app.id, "main:unknown", await connect())).status).toBe(404);
    expect(await channelOf(app.id, "main")).toMatchObject({ connectionId: null });
  });

  it("must be allowed where the channel calls", async () => {
    const app = await spine.install(stream("main"));
    const elsewhere = await connect(spine.api.call, "https://other.example");
    expect((await subscribe(app.id, "main:x", elsewhere)).status).toBe(400);
  });

  it("lets go of a connection that is deleted", async () => {
    const app = await spine.install(stream("main"));
    const connectionId = await connect();
    const { id } = (await subscribe(app.id, "*", connectionId)).body;
    expect((await spine.api.call("DELETE", `/connections/${connectionId}`)).status).toBe(200);
    const { body } = await spine.api.call("GET", `/apps/${app.id}/subscriptions/${id}`);
    expect(body.connectionId).toBeNull();
  });
});
