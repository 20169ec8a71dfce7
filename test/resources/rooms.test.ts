import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Call, createTestApi, type TestApi } from "../support/api.ts";
import { expectHidden, expectUnknownInside } from "../support/isolated.ts";

let api: TestApi;
let stranger: Call;
let ownerId: string;
beforeAll(async () => {
  api = await createTestApi();
  stranger = api.as(await api.strangerKey());
  ownerId = (await api.call("GET", "/iam/accounts")).body[0].id;
});
afterAll(() => api[Symbol.asyncDispose]());

const post = async (path: string, body: object, as: Call = api.call) => (await as("POST", path, body)).body;
const get = async (path: string) => (await api.call("GET", path)).body;
const room = (body: object = {}) => post("/rooms", { title: "Room", ...body });
const put = (id: string, patch: object) => api.call("PUT", `/rooms/${id}`, patch);

describe("a room", () => {
  it("is made with defaults, seen, listed, changed and deleted", async () => {
    const made = await room({ hash: "h" });
    expect(made).toMatchObject({
      ...{ id: expect.stringMatching(/^room_/), title: "Room", description: null, hash: "h", ownerId },
      ...{ allowGuestConversations: false, allowMessages: true, immutable: false },
      ...{ conversations: [], messages: [], participants: [] },
    });
    expect(await get(`/rooms/${made.id}`)).toEqual(made);
    expect(await get("/rooms")).toContainEqual(made);
    const changed = (await put(made.id, { title: null, ownerId: null, allowMessages: false })).body;
    expect(changed).toMatchObject({ title: null, ownerId: null, allowMessages: false, hash: "h" });
    expect((await put(made.id, { allowMessages: null })).body).toMatchObject({ allowMessages: true });
    expect((await api.call("DELETE", `/rooms/${made.id}`)).body).toEqual({ id: made.id });
    expect((await api.call("GET", `/rooms/${made.id}`)).status).toBe(404);
  });

  it("holds its conversations, participants and all messages, each with what is its own", async () => {
    const { id: roomId } = await room();
    const participant = await post(`/rooms/${roomId}/participants`, { accountId: ownerId, autoJoin: true });
    const conversation = await post("/conversations", { roomId, title: "c" });
    const attachments = [{ name: "a", payload: [1] }];
    const inside = await post(`/conversations/${conversation.id}/messages`, { content: "in", attachments });
    const outside = await post(`/rooms/${roomId}/messages`, { content: "out" });
    const bare = (message: object) => ({ ...message, attachments: [], conversation: null, room: null });
    const whole = await get(`/rooms/${roomId}`);
    expect(whole.messages).toEqual([bare(inside), bare(outside)]);
    expect(whole.participants).toEqual([{ ...participant, account: null }]);
    expect(whole.conversations).toEqual([{ ...conversation, participants: [] }]);
    expect((await get("/rooms?limit=200")).find(({ id }: { id: string }) => id === roomId)).toEqual(whole);
    expect((await api.call("DELETE", `/rooms/${roomId}`)).body).toMatchObject({ code: "conflict" });
    await api.call("DELETE", `/conversations/${conversation.id}`);
    expect((await get(`/rooms/${roomId}`)).messages).toEqual([bare(outside)]);
    expect((await api.call("DELETE", `/rooms/${roomId}`)).status).toBe(200);
  });

  it("that is immutable is not changed any more, not even to be changed again", async () => {
    const { id } = await room({ immutable: true });
    for (const patch of [{ title: "new" }, { immutable: false }, {}])
      expect((await put(id, patch)).body).toMatchObject({ code: "conflict" });
    expect((await put(id, { extra: 1 })).status).toBe(400);
    expect((await put(id, { ownerId: "acc_nobody" })).status).toBe(404);
    expect((await api.call("POST", `/rooms/${id}/messages`, { content: "a" })).status).toBe(200);
    expect((await api.call("DELETE", `/rooms/${id}`)).status).toBe(200);
  });

  it("falls in the caller's default space, in another, or in none", async () => {
    const [{ id: spaceId }] = await get("/spaces");
    const other = await post("/spaces", { name: "s" });
    expect(await room()).toMatchObject({ spaceId });
    expect(await room({ spaceId: other.id })).toMatchObject({ spaceId: other.id });
    expect(await room({ spaceId: null })).toMatchObject({ spaceId: null });
  });

  it("is hidden from other organizations, and names nothing of them", async () => {
    const { id } = await room();
    await expectHidden(stranger, "/rooms", id, { title: "theirs" });
    await expectUnknownInside(stranger, "POST", "/rooms", ownerId, (one) => ({ ownerId: one }));
    const [space] = await get("/spaces");
    await expectUnknownInside(stranger, "POST", "/rooms", space.id, (spaceId) => ({ spaceId }));
    for (const part of ["participants", "messages"]) {
      expect((await stranger("GET", `/rooms/${id}/${part}`)).status).toBe(404);
      const body = part === "messages" ? { content: "a" } : {};
      expect((await stranger("POST", `/rooms/${id}/${part}`, body)).status).toBe(404);
    }
  });
});

describe("a participant", () => {
  it("is made with its account and agent, seen, listed, changed and deleted", async () => {
    const { id: roomId } = await room();
    const agent = await post("/agents", { name: "Bot", identifier: "bot" });
    const path = `/rooms/${roomId}/participants`;
    const made = await post(path, {
      ...{ accountId: ownerId, agentIdentifier: "bot", firstName: "B", isAgent: true, isAdmin: true },
      ...{ scope: { rooms: [1] }, status: "away" },
    });
    const account = await get(`/iam/accounts/${ownerId}`);
    expect(made).toMatchObject({
      ...{ roomId, conversationId: null, firstName: "B", lastName: null, autoJoin: false, isAdmin: true },
      ...{ scope: { rooms: [1] }, status: "away" },
      account: { ...account, identities: [], memberships: [] },
      agent: { ...agent, knowledgeBase: null },
    });
    expect(await get(`${path}/${made.id}`)).toEqual(made);
    const guest = await post(path, { agentIdentifier: "nobody" });
    expect(guest).toMatchObject({ accountId: null, account: null, agent: null, scope: null, status: null });
    expect(await get(path)).toEqual([made, guest]);
    const patch = { agentIdentifier: null, scope: { rooms: [2] }, status: null };
    const changed = (await api.call("PUT", `${path}/${made.id}`, patch)).body;
    expect(changed).toMatchObject({ agent: null, scope: { rooms: [2] }, status: null, firstName: "B" });
    expect((await api.call("DELETE", `${path}/${made.id}`)).body).toEqual({ id: made.id });
    expect(await get(path)).toEqual([guest]);
  });

  it("is there once for each account, in the room and in each conversation", async () => {
    const { id: roomId } = await room();
    const path = `/rooms/${roomId}/participants`;
    const inRoom = { accountId: ownerId };
    expect((await api.call("POST", path, inRoom)).status).toBe(200);
    expect((await api.call("POST", path, inRoom)).status).toBe(409);
    const { id: conversationId } = await post("/conversations", { roomId });
    const inside = { ...inRoom, conversationId };
    const joined = await post(path, inside);
    expect(joined).toMatchObject({ conversationId, roomId });
    expect((await api.call("POST", path, inside)).status).toBe(409);
    const other = await post(path, {});
    expect((await api.call("PUT", `${path}/${other.id}`, inRoom)).status).toBe(409);
    expect(await get(`${path}?conversationId=${conversationId}`)).toEqual([joined]);
    expect((await get(path)).map(({ id }: { id: string }) => id)).not.toContain(joined.id);
    expect((await get(`/conversations/${conversationId}`)).participants).toHaveLength(1);
  });

  it("goes with its account", async () => {
    const { id: roomId } = await room();
    const account = await post("/iam/accounts", { name: "Ada" });
    const { id } = await post(`/rooms/${roomId}/participants`, { accountId: account.id });
    expect((await api.call("DELETE", `/iam/accounts/${account.id}`)).status).toBe(200);
    expect((await api.call("GET", `/rooms/${roomId}/participants/${id}`)).status).toBe(404);
  });

  it("is of its room only, which knows no conversation of another, nor an account of another organization", async () => {
    const [one, other] = [await room(), await room()];
    const { id } = await post(`/rooms/${one.id}/participants`, {});
    await expectHidden(api.call, `/rooms/${other.id}/participants`, id, { isAdmin: true });
    const conversation = await post("/conversations", { roomId: one.id });
    await expectUnknownInside(
      ...([api.call, "POST", `/rooms/${other.id}/participants`, conversation.id] as const),
      (conversationId) => ({ conversationId }),
    );
    const query = `?conversationId=${conversation.id}`;
    expect((await api.call("GET", `/rooms/${other.id}/participants${query}`)).status).toBe(404);
    const theirs = await post("/rooms", {}, stranger);
    const path = `/rooms/${theirs.id}/participants`;
    await expectUnknownInside(stranger, "POST", path, ownerId, (accountId) => ({ accountId }));
  });

  it("is refused beyond a thousand of a room", async () => {
    const { id: roomId, organizationId } = await room();
    const now = new Date();
    await api.database.db
      .insertInto("participants")
      .values(
        Array.from({ length: 1_000 }, (_, n) => ({
          ...{ id: `part_${n}`, organizationId, roomId, conversationId: null, accountId: null },
          ...{ agentIdentifier: null, firstName: null, lastName: null, scope: null, status: null },
          ...{ autoJoin: n < 2, isAdmin: false, isAgent: false, createdAt: now, updatedAt: now },
        })),
      )
      .execute();
    expect((await api.call("POST", `/rooms/${roomId}/participants`, {})).status).toBe(409);
    expect((await get(`/rooms/${roomId}`)).participants).toHaveLength(1_000);
    expect((await post("/conversations", { roomId })).participants).toHaveLength(2);
  });
});

describe("a message", () => {
  it("is kept byte for byte, and answered with its room and conversation", async () => {
    const made = await room();
    const payload = Array.from({ length: 256 }, (_, byte) => byte);
    const attachments = [
      { name: "all", kind: "file", contentType: "application/octet-stream", metadata: [0, 255], payload },
      { name: "none", kind: null, contentType: null, metadata: [], payload: [] },
    ];
    const body = { content: "Grüße 👋", aiRole: 0, attachments };
    const message = await post(`/rooms/${made.id}/messages`, body);
    expect(message).toEqual({
      ...body,
      ...{ id: expect.stringMatching(/^msg_/), authorId: ownerId, organizationId: made.organizationId },
      ...{ conversationId: null, conversation: null, room: made, createdAt: expect.any(String) },
    });
    const path = `/rooms/${made.id}/messages/${message.id}`;
    expect(await get(path)).toEqual(message);
    const changed = (await api.call("PUT", path, { aiRole: null, attachments: null })).body;
    expect(changed).toEqual({ ...message, aiRole: null, attachments: [] });
    expect((await api.call("DELETE", path)).body).toEqual({ id: message.id });
    expect(await get(`/rooms/${made.id}/messages`)).toEqual([]);
  });

  it.each([
    [{ content: "a", attachments: [{ name: "x", payload: [0, 256] }] }, "attachments[0].payload[1]"],
    [{ content: "a", attachments: [{ name: "x", payload: [-1] }] }, "attachments[0].payload[0]"],
    [{ content: "a", attachments: [{ name: "x", payload: [1.5] }] }, "attachments[0].payload[0]"],
    [{ content: "a", attachments: [{ name: "x", payload: "AQ==" }] }, "attachments[0].payload"],
    [{ content: "a", attachments: [{ name: "x", metadata: { 0: 1 } }] }, "attachments[0].metadata"],
    [{ content: "a", attachments: [{ name: "x", payload: Array(65_537).fill(1) }] }, "attachments"],
    [{ content: "a", attachments: Array(17).fill({ name: "x" }) }, "attachments"],
    [{ content: "a", attachments: [{ payload: [] }] }, "attachments[0].name"],
    [{ content: "" }, "content"],
    [{ content: "a", aiRole: 1.5 }, "aiRole"],
    [{ content: "a", authorId: "acc_1" }, "authorId"],
  ])("is refused with what does not fit: %j", async (body, path) => {
    const { id } = await room();
    const { status, body: answer } = await api.call("POST", `/rooms/${id}/messages`, body);
    expect([status, answer.details.map((one: { path: string }) => one.path)]).toEqual([400, [path]]);
  });

  it("is not said where none are allowed", async () => {
    const { id } = await room({ allowMessages: false });
    const conversation = await post("/conversations", { roomId: id });
    for (const path of [`/rooms/${id}/messages`, `/conversations/${conversation.id}/messages`])
      expect((await api.call("POST", path, { content: "a" })).body).toMatchObject({ code: "conflict" });
    expect(await get(`/rooms/${id}/messages`)).toEqual([]);
  });

  it("stays in the order in which it was said, page by page, and is told of by its own room only", async () => {
    const [one, other] = [await room(), await room()];
    const path = `/rooms/${one.id}/messages`;
    for (let n = 0; n < 12; n++) await post(path, { content: String(n) });
    const first = await api.call("GET", `${path}?limit=7`);
    const second = await api.call("GET", `${path}?limit=7&offset=7`);
    const said = [...first.body, ...second.body].map(({ content }) => content);
    expect(said).toEqual(Array.from({ length: 12 }, (_, n) => String(n)));
    expect(first.headers.get("x-total-count")).toBe("12");
    const inside = (await get(`/rooms/${one.id}`)).messages.map(
      ({ content }: { content: string }) => content,
    );
    expect(inside).toEqual(said);
    await expectHidden(api.call, `/rooms/${other.id}/messages`, first.body[0].id, { content: "b" });
  });
});
