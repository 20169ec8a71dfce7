import { beforeAll, describe, expect, it } from "vitest";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

let callerId: string;
let roomId: string;
const api = opened(createTestApi);
beforeAll(async () => {
  callerId = (await api.call.get("/iam/accounts"))[0].id;
  roomId = (await api.call.post("/rooms", { title: "Room" })).id;
});

const start = (body: object = {}) => api.call.post("/conversations", { roomId, ...body });

describe("a conversation", () => {
  it("is created in the space of its room, and can be read, listed, changed, and deleted with its messages", async () => {
    const room = await api.call.get(`/rooms/${roomId}`);
    const made = await start({ title: "Order 17" });
    expect(made).toEqual({
      id: expect.stringMatching(/^conv_/),
      authorId: callerId,
      ownerId: callerId,
      roomId,
      organizationId: room.organizationId,
      spaceId: room.spaceId,
      title: "Order 17",
      isLive: false,
      liveToken: null,
      messages: [],
      participants: [],
      messageCount: 0,
      participantCount: 0,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    });
    const message = await api.call.post(`/conversations/${made.id}/messages`, { content: "a" });
    const { messages: _, messageCount: __, participants, participantCount, ...bare } = made;
    expect([message.conversation, participants.length]).toEqual([bare, participantCount]);
    const whole = await api.call.get(`/conversations/${made.id}`);
    expect(whole.messages).toEqual([{ ...message, conversation: null, room: null }]);
    expect(await api.call.get("/conversations?limit=200")).toContainEqual(whole);
    const path = `/conversations/${made.id}`;
    expect(await api.call.put(path, { title: null, ownerId: null })).toMatchObject({
      title: null,
      ownerId: null,
    });
    for (const patch of [{ roomId }, { isLive: true }])
      expect(await api.call.expectRejection("PUT", path, patch)).toMatchObject({ paths: Object.keys(patch) });
    expect(await api.call.delete(path)).toEqual({ id: made.id });
    expect((await api.call("GET", `/rooms/${roomId}/messages/${message.id}`)).status).toBe(404);
  });

  it("can be ended once, and rejects messages after its end", async () => {
    const { id } = await start();
    expect(await api.call.post(`/conversations/${id}/end`)).toMatchObject({ id, isLive: false });
    for (const [action, body] of [
      ["end", {}],
      ["messages", { content: "late" }],
    ] as const) {
      const refusal = await api.call.expectRejection("POST", `/conversations/${id}/${action}`, body);
      expect(refusal).toEqual({ status: 409, code: "conflict" });
    }
    expect(await api.call.get(`/conversations/${id}/messages`)).toEqual([]);
  });

  it("either stores or rejects each message that is sent while the conversation ends, and acknowledges only stored messages", async () => {
    const { id } = await start();
    const send = () => api.call("POST", `/conversations/${id}/messages`, { content: "a" });
    const answers = await Promise.all([
      send(),
      send(),
      api.call("POST", `/conversations/${id}/end`),
      send(),
      send(),
    ]);
    const accepted = answers.filter(({ status, body }) => status === 200 && "content" in body).length;
    expect(answers.map(({ status }) => status).filter((status) => status !== 200 && status !== 409)).toEqual(
      [],
    );
    expect((await api.call.get(`/conversations/${id}`)).messages).toHaveLength(accepted);
  });

  it("starts with copies of those participants of the room that have autoJoin set", async () => {
    const room = await api.call.post("/rooms", {});
    const path = `/rooms/${room.id}/participants`;
    const joining = await api.call.post(path, {
      accountId: callerId,
      autoJoin: true,
      scope: { a: 1 },
      firstName: "A",
    });
    await api.call.post(path, { firstName: "B" });
    const { id, participants } = await api.call.post("/conversations", { roomId: room.id });
    const [joined] = participants;
    const own = ["id", "conversationId", "createdAt", "updatedAt"].map((name) => [name, joined[name]]);
    expect(participants).toEqual([{ ...joining, account: null, ...Object.fromEntries(own) }]);
    expect([joined.conversationId, joined.id === joining.id]).toEqual([id, false]);
    await api.call.delete(`${path}/${joining.id}`);
    expect((await api.call.get(`/conversations/${id}`)).participants).toHaveLength(1);
  });

  it("is returned with its newest 1,000 messages, and lists all messages in pages", async () => {
    const { id, organizationId } = await start();
    await api.database.db
      .insertInto("messages")
      .values(
        Array.from({ length: 1_010 }, (_, n) => ({
          id: `msg_${n}`,
          organizationId,
          roomId,
          conversationId: id,
          authorId: null,
          aiRole: null,
          content: String(n),
          attachments: "[]",
          createdAt: new Date(1_000 * n),
          updatedAt: new Date(1_000 * n),
        })),
      )
      .execute();
    const { messages, messageCount } = await api.call.get(`/conversations/${id}`);
    expect(messageCount).toBe(1_010);
    expect([messages.length, messages[0].content, messages.at(-1).content]).toEqual([1_000, "10", "1009"]);
    const listed = await api.call.get("/conversations?limit=200");
    const shown = listed.flatMap((one: { messages: object[] }) => one.messages).length;
    expect(shown).toBeLessThanOrEqual(1_000);
    const page = await api.call("GET", `/conversations/${id}/messages?limit=2&offset=1008`);
    expect(page.body.map(({ content }: { content: string }) => content)).toEqual(["1008", "1009"]);
    expect(page.headers.get("x-total-count")).toBe("1010");
  });

  it("is returned with its newest messages up to 1 MiB of attachments, and always with its newest message", async () => {
    const { id } = await start();
    const attachments = [{ name: "a", payload: Array.from({ length: 60_000 }, () => 1) }];
    for (let n = 0; n < 20; n++)
      await api.call.post(`/conversations/${id}/messages`, { content: String(n), attachments });
    const { messages, messageCount } = await api.call.get(`/conversations/${id}`);
    expect([messageCount, messages.at(-1).content, messages.at(-1).attachments[0].payload.length]).toEqual([
      ...[20, "19", 60_000],
    ]);
    expect(messages.length).toBeGreaterThan(5);
    expect(messages.length).toBeLessThan(20);
    const listed = await api.call.get("/conversations?limit=200");
    const shown = listed.find((one: { id: string }) => one.id === id);
    expect([shown.messageCount, shown.messages.at(-1).content]).toEqual([20, "19"]);
  });
});
