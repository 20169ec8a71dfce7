import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Call, createTestApi, type TestApi } from "../support/api.ts";

let api: TestApi;
let roomId: string;
beforeAll(async () => {
  api = await createTestApi();
  roomId = (await post("/rooms", { title: "Support" })).id;
});
afterAll(() => api[Symbol.asyncDispose]());

const LIVE = "/conversations/CreateLiveConversation";
const post = async (path: string, body: object, as: Call = api.call) => (await as("POST", path, body)).body;
const get = async (path: string) => (await api.call("GET", path)).body;

async function begin(body: object = {}) {
  const conversation = await post(LIVE, { roomId, ...body });
  return { conversation, guest: api.as(conversation.liveToken), path: `/conversations/${conversation.id}` };
}

it("leads from a room to a conversation that a guest reads and posts to with the live token alone, until it ends", async () => {
  const room = await post("/rooms", { title: "Shop" });
  const [account] = await get("/iam/accounts");
  await post(`/rooms/${room.id}/participants`, { accountId: account.id, autoJoin: true });
  const made = await post(LIVE, { roomId: room.id, title: "Order 17", message: "How can I help?" });
  expect(made).toMatchObject({
    ...{ isLive: true, title: "Order 17", roomId: room.id, authorId: account.id, ownerId: account.id },
    messages: [{ content: "How can I help?", authorId: account.id, conversationId: made.id }],
    participants: [{ accountId: account.id, conversationId: made.id, autoJoin: true }],
  });
  const path = `/conversations/${made.id}`;
  const guest = api.as(made.liveToken);
  expect((await guest("GET", path)).body).toEqual({ ...made, liveToken: null });
  const said = await guest("POST", `${path}/messages`, { content: "Where is it?" });
  expect(said.body).toMatchObject({ content: "Where is it?", authorId: null, conversationId: made.id });
  await post(`${path}/messages`, { content: "On its way." });
  const read = (await guest("GET", `${path}/messages`)).body;
  expect(read.map(({ content }: { content: string }) => content)).toEqual([
    ...["How can I help?", "Where is it?", "On its way."],
  ]);
  expect((await guest("GET", `${path}/messages/${said.body.id}`)).body).toEqual(said.body);
  expect((await api.call("POST", `${path}/end`)).body).toMatchObject({ isLive: false, liveToken: null });
  for (const [method, at] of [
    ["GET", path],
    ["GET", `${path}/messages`],
    ["POST", `${path}/messages`],
  ] as const)
    expect((await guest(method, at, method === "POST" ? { content: "late" } : undefined)).status).toBe(401);
  expect((await get(path)).messages).toHaveLength(3);
});

describe("a live token", () => {
  it("is told once and kept as a hash", async () => {
    const { conversation, path } = await begin();
    const { liveToken, id } = conversation;
    expect(liveToken).toMatch(/^lt_[0-9a-z]{40}$/);
    const answers = [await get(path), await get("/conversations?limit=200"), await get(`/rooms/${roomId}`)];
    expect(JSON.stringify(answers)).not.toContain(liveToken);
    const row = await api.database.db
      .selectFrom("conversations")
      .selectAll()
      .where("id", "=", id)
      .executeTakeFirstOrThrow();
    expect(JSON.stringify({ ...row, hash: row.liveTokenHash?.toString("latin1") })).not.toContain(liveToken);
    expect(JSON.stringify(api.lines)).not.toContain(liveToken);
  });

  it("opens nothing else: not its room, no other conversation, no other verb, no token, no list", async () => {
    const { guest, path } = await begin();
    const other = await begin();
    for (const [method, at, body] of [
      ["PUT", path, { title: "mine" }],
      ["DELETE", path],
      ["POST", `${path}/end`, {}],
      ["GET", "/conversations"],
      ["POST", LIVE, { roomId }],
      ["GET", `/rooms/${roomId}`],
      ["GET", `/rooms/${roomId}/messages`],
      ["GET", "/organizations"],
      ["POST", "/auth/tokens", {}],
      ["GET", "/channel-kinds"],
    ] as const)
      expect([at, (await guest(method, at, body)).body.code]).toEqual([at, "permission_denied"]);
    for (const at of [other.path, `${other.path}/messages`, "/conversations/x"])
      expect((await guest("GET", at)).body).toEqual({
        ...{ code: "not_found", message: "There is no such conversation." },
      });
    expect((await guest("POST", `${other.path}/messages`, { content: "a" })).status).toBe(404);
    expect((await get(other.path)).messages).toEqual([]);
  });

  it("does not show the room, whose notes are not for guests", async () => {
    const { guest, path } = await begin({ message: "Hello" });
    const [message] = (await guest("GET", `${path}/messages`)).body;
    expect(message).toMatchObject({ room: null, conversation: { isLive: true, liveToken: null } });
    expect((await get(`${path}/messages`))[0].room).toMatchObject({ id: roomId });
  });

  it("does not change nor delete what was said", async () => {
    const { guest, path, conversation } = await begin({ message: "Hello" });
    const at = `${path}/messages/${conversation.messages[0].id}`;
    expect((await guest("PUT", at, { content: "Bye" })).status).toBe(403);
    expect((await guest("DELETE", at)).status).toBe(403);
    expect((await guest("GET", at)).body).toMatchObject({ content: "Hello" });
  });

  it("ends with a deletion, and with its author's account, at once", async () => {
    const deleted = await begin();
    expect((await deleted.guest("GET", deleted.path)).status).toBe(200);
    await api.call("DELETE", deleted.path);
    expect((await deleted.guest("GET", deleted.path)).status).toBe(401);

    const key = await post("/iam/api-keys", { name: "desk", permissions: ["conversations.write"] });
    const made = await post(LIVE, { roomId }, api.as(key.key));
    const guest = api.as(made.liveToken);
    expect((await guest("GET", `/conversations/${made.id}`)).status).toBe(200);
    await api.call("DELETE", `/iam/api-keys/${key.id}`);
    expect((await guest("GET", `/conversations/${made.id}`)).status).toBe(200);
    await api.call("PUT", `/iam/accounts/${key.accountId}`, { status: "disabled" });
    expect((await guest("GET", `/conversations/${made.id}`)).status).toBe(401);
    expect(await get(`/conversations/${made.id}`)).toMatchObject({ isLive: true });
  });

  it("names its requests apart from the account that has lent it", async () => {
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

  it("is neither right nor wrong while the database is away", async () => {
    await using other = await createTestApi();
    const room = (await other.call("POST", "/rooms", {})).body;
    const { id, liveToken } = (await other.call("POST", LIVE, { roomId: room.id })).body;
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
  it("is refused where the room takes no messages, with a first one or without, and leaves nothing", async () => {
    const room = await post("/rooms", { allowMessages: false });
    for (const body of [{}, { message: "Hello" }])
      expect((await post(LIVE, { roomId: room.id, ...body })).code).toBe("conflict");
    expect(await get(`/rooms/${room.id}`)).toMatchObject({ conversations: [], messages: [] });
  });

  it("asks for token, permission, body, room and state in that order", async () => {
    const closed = await post("/rooms", { allowMessages: false });
    const reader = api.as(await api.keyWith("conversations.read"));
    const unknown = { roomId: "room_01jc9x2k4v8m3n5p7q9r1s0" };
    expect((await api.as("nobody")("POST", LIVE, { extra: 1 })).status).toBe(401);
    expect((await reader("POST", LIVE, { extra: 1 })).status).toBe(403);
    expect((await api.call("POST", LIVE, { ...unknown, extra: 1 })).status).toBe(400);
    expect((await api.call("POST", LIVE, { ...unknown, message: 1 })).status).toBe(400);
    expect((await api.call("POST", LIVE, unknown)).status).toBe(404);
    expect((await api.call("POST", LIVE, { roomId: closed.id })).status).toBe(409);
    expect(await post(LIVE, {})).toMatchObject({ details: [{ path: "roomId" }] });
  });

  it("answers the same token to a retry of its own key, and to nobody else's", async () => {
    const headers = { "idempotency-key": "begin" };
    const once = await api.call("POST", LIVE, { roomId }, headers);
    const again = await api.call("POST", LIVE, { roomId }, headers);
    expect(again.body).toEqual(once.body);
    const other = api.as(await api.keyWith("*"));
    expect((await other("POST", LIVE, { roomId }, headers)).status).toBe(409);
  });
});
