import { beforeAll, describe, expect, it } from "vitest";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

let ownerId: string;
const api = opened(createTestApi);
const { call } = api;
beforeAll(async () => {
  ownerId = (await call.get("/iam/accounts"))[0].id;
});

const room = (body: object = {}) => call.post("/rooms", { title: "Room", ...body });

describe("a room", () => {
  it("is created with defaults, and can be read, listed, changed and deleted", async () => {
    const made = await room({ hash: "h" });
    expect(made).toMatchObject({
      id: expect.stringMatching(/^room_/),
      title: "Room",
      description: null,
      hash: "h",
      ownerId,
      allowGuestConversations: false,
      allowMessages: true,
      immutable: false,
      conversations: [],
      messages: [],
      participants: [],
      conversationCount: 0,
      messageCount: 0,
      participantCount: 0,
    });
    expect(await call.get(`/rooms/${made.id}`)).toEqual(made);
    expect(await call.get("/rooms")).toContainEqual(made);
    const changed = await call.put(`/rooms/${made.id}`, { title: null, ownerId: null, allowMessages: false });
    expect(changed).toMatchObject({ title: null, ownerId: null, allowMessages: false, hash: "h" });
    const refusal = await call.expectRejection("PUT", `/rooms/${made.id}`, { allowMessages: null });
    expect(refusal).toMatchObject({ status: 400, paths: ["allowMessages"] });
    expect(await call.delete(`/rooms/${made.id}`)).toEqual({ id: made.id });
    expect((await call("GET", `/rooms/${made.id}`)).status).toBe(404);
  });

  it("is returned with its conversations, participants and all messages, and cannot be deleted while it has a conversation", async () => {
    const { id: roomId } = await room();
    const participant = await call.post(`/rooms/${roomId}/participants`, {
      accountId: ownerId,
      autoJoin: true,
    });
    const conversation = await call.post("/conversations", { roomId, title: "c" });
    const attachments = [{ name: "a", payload: [1] }];
    const inside = await call.post(`/conversations/${conversation.id}/messages`, {
      content: "in",
      attachments,
    });
    const outside = await call.post(`/rooms/${roomId}/messages`, { content: "out" });
    const bare = (message: object) => ({ ...message, conversation: null, room: null });
    const whole = await call.get(`/rooms/${roomId}`);
    expect(whole.messages).toEqual([bare(inside), bare(outside)]);
    expect(whole.participants).toEqual([{ ...participant, account: null }]);
    expect(whole.messages[0].attachments).toMatchObject(attachments);
    const { messages: _, messageCount, participants, participantCount, ...bareConversation } = conversation;
    expect([messageCount, participantCount, participants.length]).toEqual([0, 1, 1]);
    expect(whole.conversations).toEqual([bareConversation]);
    expect(whole).toMatchObject({ conversationCount: 1, messageCount: 2, participantCount: 1 });
    expect((await call.get("/rooms?limit=200")).find(({ id }: { id: string }) => id === roomId)).toEqual(
      whole,
    );
    expect(await call.expectRejection("DELETE", `/rooms/${roomId}`)).toMatchObject({ status: 409 });
    await call.delete(`/conversations/${conversation.id}`);
    expect((await call.get(`/rooms/${roomId}`)).messages).toEqual([bare(outside)]);
    await call.delete(`/rooms/${roomId}`);
  });

  it("can neither be changed nor made mutable again after immutable was set", async () => {
    const { id } = await room({ immutable: true });
    const status = async (patch: object) => (await call("PUT", `/rooms/${id}`, patch)).status;
    for (const patch of [{ title: "new" }, { immutable: false }, {}]) expect(await status(patch)).toBe(409);
    // The gateway validates the body before it checks `immutable`.
    expect(await status({ extra: 1 })).toBe(400);
    expect(await status({ ownerId: "acc_nobody" })).toBe(404);
    await call.post(`/rooms/${id}/messages`, { content: "a" });
    await call.delete(`/rooms/${id}`);
  });

  it("is created in the requested space or in the caller's default space, and can be removed from its space", async () => {
    const [{ id: spaceId }] = await call.get("/spaces");
    const other = await call.post("/spaces", { name: "s" });
    expect(await room()).toMatchObject({ spaceId });
    expect(await room({ spaceId: other.id })).toMatchObject({ spaceId: other.id });
    const { id } = await room({ spaceId: null });
    expect(await call.get(`/rooms/${id}`)).toMatchObject({ spaceId });
    expect(await call.put(`/rooms/${id}`, { spaceId: null })).toMatchObject({ spaceId: null });
  });
});

describe("a participant", () => {
  it("is created with its account and agent, and can be read, listed, changed and deleted", async () => {
    const { id: roomId } = await room();
    const agent = await call.post("/agents", { name: "Bot", identifier: "bot" });
    // Agents of another organization are never shown, even if they have the same identifier.
    const stranger = api.as(await api.createForeignKey());
    for (const identifier of ["bot", "nobody"]) await stranger.post("/agents", { name: "Other", identifier });
    const path = `/rooms/${roomId}/participants`;
    const made = await call.post(path, {
      accountId: ownerId,
      agentIdentifier: "bot",
      firstName: "B",
      isAgent: true,
      isAdmin: true,
      scope: { rooms: [1] },
      status: "away",
    });
    const { identities: _, memberships, ...account } = await call.get(`/iam/accounts/${ownerId}`);
    expect(made).toMatchObject({
      roomId,
      conversationId: null,
      firstName: "B",
      lastName: null,
      autoJoin: false,
      isAdmin: true,
      scope: { rooms: [1] },
      status: "away",
      account,
      agent: { ...agent, knowledgeBase: null },
    });
    expect([made.account, memberships.length]).toEqual([account, 1]);
    expect(await call.get(`${path}/${made.id}`)).toEqual(made);
    const guest = await call.post(path, { agentIdentifier: "nobody" });
    expect(guest).toMatchObject({ accountId: null, account: null, agent: null, scope: null, status: null });
    expect(await call.get(path)).toEqual([made, guest]);
    const patch = { agentIdentifier: null, scope: { rooms: [2] }, status: null };
    const changed = await call.put(`${path}/${made.id}`, patch);
    expect(changed).toMatchObject({ agent: null, scope: { rooms: [2] }, status: null, firstName: "B" });
    expect(await call.delete(`${path}/${made.id}`)).toEqual({ id: made.id });
    expect(await call.get(path)).toEqual([guest]);
  });

  it("can exist only once for each account in a room, and once in each of its conversations", async () => {
    const { id: roomId } = await room();
    const path = `/rooms/${roomId}/participants`;
    const inRoom = { accountId: ownerId };
    await call.post(path, inRoom);
    expect((await call("POST", path, inRoom)).status).toBe(409);
    const { id: conversationId } = await call.post("/conversations", { roomId });
    const inside = { ...inRoom, conversationId };
    const joined = await call.post(path, inside);
    expect(joined).toMatchObject({ conversationId, roomId });
    expect((await call("POST", path, inside)).status).toBe(409);
    const other = await call.post(path, {});
    expect((await call("PUT", `${path}/${other.id}`, inRoom)).status).toBe(409);
    expect(await call.get(`${path}?conversationId=${conversationId}`)).toEqual([joined]);
    expect((await call.get(path)).map(({ id }: { id: string }) => id)).not.toContain(joined.id);
    expect((await call.get(`/conversations/${conversationId}`)).participants).toHaveLength(1);
  });

  it("is deleted with its account", async () => {
    const { id: roomId } = await room();
    const account = await call.post("/iam/accounts", { name: "Ada" });
    const { id } = await call.post(`/rooms/${roomId}/participants`, { accountId: account.id });
    await call.delete(`/iam/accounts/${account.id}`);
    expect((await call("GET", `/rooms/${roomId}/participants/${id}`)).status).toBe(404);
  });

  it("is found only in its own room, and can join only conversations of that room", async () => {
    const [one, other] = [await room(), await room()];
    const { id } = await call.post(`/rooms/${one.id}/participants`, {});
    const others = `/rooms/${other.id}/participants`;
    for (const [method, body] of [["GET"], ["PUT", { isAdmin: true }], ["DELETE"]] as const)
      expect((await call(method, `${others}/${id}`, body)).status).toBe(404);
    expect(await call.get(`/rooms/${one.id}/participants/${id}`)).toMatchObject({ isAdmin: false });
    const { id: conversationId } = await call.post("/conversations", { roomId: one.id });
    expect(await call.expectRejection("POST", others, { conversationId })).toMatchObject({ status: 404 });
    expect((await call("GET", `${others}?conversationId=${conversationId}`)).status).toBe(404);
  });

  it("is rejected if its room already has 1,000 participants", async () => {
    const { id: roomId, organizationId } = await room();
    const now = new Date();
    await api.database.db
      .insertInto("participants")
      .values(
        Array.from({ length: 1_000 }, (_, n) => ({
          id: `part_${n}`,
          organizationId,
          roomId,
          conversationId: null,
          accountId: null,
          agentIdentifier: null,
          firstName: null,
          lastName: null,
          scope: null,
          status: null,
          autoJoin: n < 2,
          isAdmin: false,
          isAgent: false,
          createdAt: now,
          updatedAt: now,
        })),
      )
      .execute();
    expect((await call("POST", `/rooms/${roomId}/participants`, {})).status).toBe(409);
    expect((await call.get(`/rooms/${roomId}`)).participants).toHaveLength(1_000);
    expect((await call.post("/conversations", { roomId })).participants).toHaveLength(2);
  });
});

describe("a message", () => {
  it("is stored without any change to its text or attachments, and returned with its room and conversation", async () => {
    const made = await room();
    const payload = Array.from({ length: 256 }, (_, byte) => byte);
    const attachments = [
      { name: "all", kind: "file", contentType: "application/octet-stream", metadata: [0, 255], payload },
      { name: "none", kind: null, contentType: null, metadata: [], payload: [] },
    ];
    const body = { content: "Grüße 👋", aiRole: 0, attachments };
    const message = await call.post(`/rooms/${made.id}/messages`, body);
    const { conversations: _c, messages: _m, participants: _p, ...counted } = made;
    const { conversationCount: _cc, messageCount: _mc, participantCount: _pc, ...bare } = counted;
    expect(message).toEqual({
      ...body,
      id: expect.stringMatching(/^msg_/),
      authorId: ownerId,
      organizationId: made.organizationId,
      conversationId: null,
      conversation: null,
      room: bare,
      createdAt: expect.any(String),
    });
    const path = `/rooms/${made.id}/messages/${message.id}`;
    expect(await call.get(path)).toEqual(message);
    const changed = await call.put(path, { aiRole: null, attachments: [] });
    expect(changed).toEqual({ ...message, aiRole: null, attachments: [] });
    expect(await call.delete(path)).toEqual({ id: message.id });
    expect(await call.get(`/rooms/${made.id}/messages`)).toEqual([]);
  });

  it.each([
    [{ content: "a", attachments: [{ name: "x", payload: [0, 256] }] }, "attachments[0].payload[1]"],
    [{ content: "a", attachments: [{ name: "x", payload: [-1] }] }, "attachments[0].payload[0]"],
    [{ content: "a", attachments: [{ name: "x", payload: [1.5] }] }, "attachments[0].payload[0]"],
    [{ content: "a", attachments: [{ name: "x", payload: "AQ==" }] }, "attachments[0].payload"],
    [{ content: "a", attachments: [{ name: "x", metadata: { 0: 1 } }] }, "attachments[0].metadata"],
    [{ content: "a", attachments: [{ name: "x", payload: Array(65_537).fill(1) }] }, "attachments"],
    [{ content: "a", attachments: Array(17).fill({ name: "x" }) }, "attachments"],
    [{ content: "" }, "content"],
    [{ content: "a", aiRole: 1.5 }, "aiRole"],
    // A request cannot set the author, which is always the caller.
    [{ content: "a", authorId: "acc_1" }, "authorId"],
  ])("is rejected, and the error names the invalid field, if the request body is %j", async (body, path) => {
    const { id } = await room();
    expect(await call.expectRejection("POST", `/rooms/${id}/messages`, body)).toEqual({
      status: 400,
      code: "invalid_parameters",
      paths: [path],
    });
  });

  it("is rejected in a room that does not allow messages, and in conversations of that room", async () => {
    const { id } = await room({ allowMessages: false });
    const conversation = await call.post("/conversations", { roomId: id });
    for (const path of [`/rooms/${id}/messages`, `/conversations/${conversation.id}/messages`])
      expect(await call.expectRejection("POST", path, { content: "a" })).toMatchObject({ status: 409 });
    expect(await call.get(`/rooms/${id}/messages`)).toEqual([]);
  });

  it("is listed in order of creation across pages, and is found only in its own room", async () => {
    const [one, other] = [await room(), await room()];
    const path = `/rooms/${one.id}/messages`;
    for (let n = 0; n < 12; n++) await call.post(path, { content: String(n) });
    const first = await call("GET", `${path}?limit=7`);
    const second = await call("GET", `${path}?limit=7&offset=7`);
    const contents = [...first.body, ...second.body].map(({ content }) => content);
    expect(contents).toEqual(Array.from({ length: 12 }, (_, n) => String(n)));
    expect(first.headers.get("x-total-count")).toBe("12");
    const inside = (await call.get(`/rooms/${one.id}`)).messages.map(
      ({ content }: { content: string }) => content,
    );
    expect(inside).toEqual(contents);
    const misplaced = `/rooms/${other.id}/messages/${first.body[0].id}`;
    for (const [method, body] of [["GET"], ["PUT", { content: "b" }], ["DELETE"]] as const)
      expect((await call(method, misplaced, body)).status).toBe(404);
    expect(await call.get(path)).toHaveLength(12);
  });
});
