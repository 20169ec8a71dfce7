import pg from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

let roomId: string;
const api = opened(createTestApi);
beforeAll(async () => {
  roomId = (await api.call.post("/rooms", { title: "Support" })).id;
});

const LIVE = "/conversations/CreateLiveConversation";

async function begin(body: object = {}) {
  const conversation = await api.call.post(LIVE, { roomId, ...body });
  return { conversation, guest: api.as(conversation.liveToken), path: `/conversations/${conversation.id}` };
}

it("a guest can read and post messages in a live conversation with only its live token, until the conversation ends", async () => {
  const room = await api.call.post("/rooms", { title: "Shop" });
  const [account] = await api.call.get("/iam/accounts");
  await api.call.post(`/rooms/${room.id}/participants`, { accountId: account.id, autoJoin: true });
  const made = await api.call.post(LIVE, { roomId: room.id, title: "Order 17", message: "How can I help?" });
  expect(made).toMatchObject({
    isLive: true,
    title: "Order 17",
    roomId: room.id,
    authorId: account.id,
    ownerId: account.id,
    messages: [{ content: "How can I help?", authorId: account.id, conversationId: made.id }],
    participants: [{ accountId: account.id, conversationId: made.id, autoJoin: true }],
  });
  const path = `/conversations/${made.id}`;
  const guest = api.as(made.liveToken);
  expect(await guest.get(path)).toEqual({ ...made, liveToken: null });
  const posted = await guest.post(`${path}/messages`, { content: "Where is it?" });
  expect(posted).toMatchObject({ content: "Where is it?", authorId: null, conversationId: made.id });
  await api.call.post(`${path}/messages`, { content: "On its way." });
  const read = await guest.get(`${path}/messages`);
  expect(read.map(({ content }: { content: string }) => content)).toEqual([
    ...["How can I help?", "Where is it?", "On its way."],
  ]);
  expect(await guest.get(`${path}/messages/${posted.id}`)).toEqual(posted);
  expect(await api.call.post(`${path}/end`)).toMatchObject({ isLive: false, liveToken: null });
  for (const [method, at] of [
    ["GET", path],
    ["GET", `${path}/messages`],
    ["POST", `${path}/messages`],
  ] as const)
    expect((await guest(method, at, method === "POST" ? { content: "late" } : undefined)).status).toBe(401);
  expect((await api.call.get(path)).messages).toHaveLength(3);
});

describe("a live token", () => {
  it("is returned once and stored as a hash", async () => {
    const { conversation, path } = await begin();
    const { liveToken, id } = conversation;
    expect(liveToken).toMatch(/^lt_[0-9a-z]{40}$/);
    const answers = [
      await api.call.get(path),
      await api.call.get("/conversations?limit=200"),
      await api.call.get(`/rooms/${roomId}`),
    ];
    expect(JSON.stringify(answers)).not.toContain(liveToken);
    const row = await api.database.db
      .selectFrom("conversations")
      .selectAll()
      .where("id", "=", id)
      .executeTakeFirstOrThrow();
    expect(JSON.stringify({ ...row, hash: row.liveTokenHash?.toString("latin1") })).not.toContain(liveToken);
    expect(JSON.stringify(api.lines)).not.toContain(liveToken);
  });

  it("does not give guests access to the room", async () => {
    const { guest, path } = await begin({ message: "Hello" });
    const [message] = await guest.get(`${path}/messages`);
    expect(message).toMatchObject({ room: null, conversation: { isLive: true, liveToken: null } });
    expect((await api.call.get(`${path}/messages`))[0].room).toMatchObject({ id: roomId });
  });

  it("becomes invalid when the conversation is deleted or the author's account is disabled", async () => {
    const deleted = await begin();
    await deleted.guest.get(deleted.path);
    await api.call.delete(deleted.path);
    expect((await deleted.guest("GET", deleted.path)).status).toBe(401);

    const key = await api.call.post("/iam/api-keys", { name: "desk", permissions: ["conversations.write"] });
    const made = await api.as(key.key).post(LIVE, { roomId });
    const guest = api.as(made.liveToken);
    await guest.get(`/conversations/${made.id}`);
    await api.call.delete(`/iam/api-keys/${key.id}`);
    await guest.get(`/conversations/${made.id}`);
    await api.call.put(`/iam/accounts/${key.accountId}`, { status: "disabled" });
    expect((await guest("GET", `/conversations/${made.id}`)).status).toBe(401);
    expect(await api.call.get(`/conversations/${made.id}`)).toMatchObject({ isLive: true });
  });

  it("has its own Idempotency-Keys, separate from those of the account that created the conversation", async () => {
    const { guest, path } = await begin();
    const headers = { "idempotency-key": "one" };
    const first = await guest("POST", `${path}/messages`, { content: "a" }, headers);
    const again = await guest("POST", `${path}/messages`, { content: "a" }, headers);
    expect([again.headers.get("idempotent-replayed"), again.body]).toEqual(["true", first.body]);
    const other = await begin();
    for (const call of [api.call, other.guest]) {
      const at = call === api.call ? path : other.path;
      const answer = await call("POST", `${at}/messages`, { content: "b" }, headers);
      expect(answer).toMatchObject({ status: 200, body: { content: "b" } });
    }
  });

  it("gets a 503 response, not a 401, while the database is unavailable", async () => {
    await using other = await createTestApi();
    const room = await other.call.post("/rooms");
    const { id, liveToken } = await other.call.post(LIVE, { roomId: room.id });
    const { connection } = other.database;
    const server = new pg.Client({ ...connection, database: "postgres" });
    await server.connect();
    await server.query(`ALTER DATABASE ${connection.database} ALLOW_CONNECTIONS false`);
    await server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", [
      connection.database,
    ]);
    for (const token of [liveToken, `lt_${"0".repeat(40)}`]) {
      const answer = await other.as(token)("GET", `/conversations/${id}`);
      expect(answer).toMatchObject({ status: 503, body: { code: "unavailable" } });
    }
    await server.query(`ALTER DATABASE ${connection.database} ALLOW_CONNECTIONS true`);
    await server.end();
  });
});

describe("CreateLiveConversation", () => {
  it("is rejected in a room that does not allow messages, and creates neither a conversation nor a message", async () => {
    const room = await api.call.post("/rooms", { allowMessages: false });
    for (const body of [{}, { message: "Hello" }])
      expect(await api.call.expectRejection("POST", LIVE, { roomId: room.id, ...body })).toEqual({
        status: 409,
        code: "conflict",
      });
    expect(await api.call.get(`/rooms/${room.id}`)).toMatchObject({ conversations: [], messages: [] });
  });

  it("reports the first failed check in this order: token, permission, body, room, state of the room", async () => {
    const closed = await api.call.post("/rooms", { allowMessages: false });
    const reader = api.as(await api.keyWith("conversations.read"));
    const unknown = { roomId: "room_01jc9x2k4v8m3n5p7q9r1s0" };
    expect((await api.as("nobody")("POST", LIVE, { extra: 1 })).status).toBe(401);
    expect((await reader("POST", LIVE, { extra: 1 })).status).toBe(403);
    expect((await api.call("POST", LIVE, { ...unknown, extra: 1 })).status).toBe(400);
    expect((await api.call("POST", LIVE, { ...unknown, message: 1 })).status).toBe(400);
    expect((await api.call("POST", LIVE, unknown)).status).toBe(404);
    expect((await api.call("POST", LIVE, { roomId: closed.id })).status).toBe(409);
  });

  it("returns the same live token to a retry with the same API key, and rejects a retry with a different API key", async () => {
    const headers = { "idempotency-key": "begin" };
    const once = await api.call("POST", LIVE, { roomId }, headers);
    const again = await api.call("POST", LIVE, { roomId }, headers);
    expect(again.body).toEqual(once.body);
    const other = api.as(await api.keyWith("*"));
    expect((await other("POST", LIVE, { roomId }, headers)).status).toBe(409);
  });
});
