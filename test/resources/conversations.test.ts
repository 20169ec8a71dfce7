import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Call, createTestApi, type TestApi } from "../support/api.ts";
import { expectHidden, expectUnknownInside } from "../support/isolated.ts";

let api: TestApi;
let stranger: Call;
let callerId: string;
let roomId: string;
beforeAll(async () => {
  api = await createTestApi();
  stranger = api.as(await api.strangerKey());
  callerId = (await api.call("GET", "/iam/accounts")).body[0].id;
  roomId = (await post("/rooms", { title: "Room" })).id;
});
afterAll(() => api[Symbol.asyncDispose]());

const post = async (path: string, body: object) => (await api.call("POST", path, body)).body;
const get = async (path: string) => (await api.call("GET", path)).body;
const start = (body: object = {}) => post("/conversations", { roomId, ...body });

describe("a conversation", () => {
  it("is made in its room's space, seen, listed, changed and deleted with what was said in it", async () => {
    const room = await get(`/rooms/${roomId}`);
    const made = await start({ title: "Order 17" });
    expect(made).toEqual({
      ...{ id: expect.stringMatching(/^conv_/), authorId: callerId, ownerId: callerId, roomId },
      ...{ organizationId: room.organizationId, spaceId: room.spaceId, title: "Order 17" },
      ...{ isLive: false, liveToken: null, messages: [], participants: [] },
      ...{ createdAt: expect.any(String), updatedAt: expect.any(String) },
    });
    const message = await post(`/conversations/${made.id}/messages`, { content: "a" });
    expect(message.conversation).toEqual(made);
    const whole = await get(`/conversations/${made.id}`);
    expect(whole.messages).toEqual([{ ...message, conversation: null, room: null }]);
    expect(await get("/conversations?limit=200")).toContainEqual(whole);
    const put = async (patch: object) => (await api.call("PUT", `/conversations/${made.id}`, patch)).body;
    expect(await put({ title: null, ownerId: null })).toMatchObject({ title: null, ownerId: null });
    expect(await put({ roomId })).toMatchObject({ details: [{ path: "roomId" }] });
    expect(await put({ isLive: true })).toMatchObject({ details: [{ path: "isLive" }] });
    expect((await api.call("DELETE", `/conversations/${made.id}`)).body).toEqual({ id: made.id });
    expect((await api.call("GET", `/rooms/${roomId}/messages/${message.id}`)).status).toBe(404);
  });

  it("takes no more messages once it has ended, and ends once", async () => {
    const { id } = await start();
    expect((await api.call("POST", `/conversations/${id}/end`)).body).toMatchObject({ id, isLive: false });
    expect((await api.call("POST", `/conversations/${id}/end`)).status).toBe(409);
    const refused = await api.call("POST", `/conversations/${id}/messages`, { content: "late" });
    expect(refused.body).toMatchObject({ code: "conflict" });
    expect(await get(`/conversations/${id}/messages`)).toEqual([]);
  });

  it("ends between two messages, never in the middle of one", async () => {
    const { id } = await start();
    const say = () => api.call("POST", `/conversations/${id}/messages`, { content: "a" });
    const answers = await Promise.all([
      say(),
      say(),
      api.call("POST", `/conversations/${id}/end`),
      say(),
      say(),
    ]);
    const said = answers.filter(({ status, body }) => status === 200 && "content" in body).length;
    expect(answers.map(({ status }) => status).filter((status) => status !== 200 && status !== 409)).toEqual(
      [],
    );
    expect((await get(`/conversations/${id}`)).messages).toHaveLength(said);
  });

  it("is joined by the room's participants who do so by themselves", async () => {
    const room = await post("/rooms", {});
    const path = `/rooms/${room.id}/participants`;
    const joining = await post(path, {
      accountId: callerId,
      autoJoin: true,
      scope: { a: 1 },
      firstName: "A",
    });
    await post(path, { firstName: "B" });
    const { id, participants } = await post("/conversations", { roomId: room.id });
    const [joined] = participants;
    const own = ["id", "conversationId", "createdAt", "updatedAt"].map((name) => [name, joined[name]]);
    expect(participants).toEqual([{ ...joining, account: null, ...Object.fromEntries(own) }]);
    expect([joined.conversationId, joined.id === joining.id]).toEqual([id, false]);
    await api.call("DELETE", `${path}/${joining.id}`);
    expect((await get(`/conversations/${id}`)).participants).toHaveLength(1);
  });

  it("shows the newest messages where there are too many, and all of them in pages", async () => {
    const { id, organizationId } = await start();
    await api.database.db
      .insertInto("messages")
      .values(
        Array.from({ length: 1_010 }, (_, n) => ({
          ...{ id: `msg_${n}`, organizationId, roomId, conversationId: id, authorId: null, aiRole: null },
          ...{ content: String(n), attachments: "[]" },
          ...{ createdAt: new Date(1_000 * n), updatedAt: new Date(1_000 * n) },
        })),
      )
      .execute();
    const { messages } = await get(`/conversations/${id}`);
    expect([messages.length, messages[0].content, messages.at(-1).content]).toEqual([1_000, "10", "1009"]);
    const listed = await api.call("GET", "/conversations?limit=200");
    const shown = listed.body.flatMap((one: { messages: object[] }) => one.messages).length;
    expect(shown).toBeLessThanOrEqual(1_000);
    const page = await api.call("GET", `/conversations/${id}/messages?limit=2&offset=1008`);
    expect(page.body.map(({ content }: { content: string }) => content)).toEqual(["1008", "1009"]);
    expect(page.headers.get("x-total-count")).toBe("1010");
  });

  it("is hidden from other organizations with its messages, and names nothing of them", async () => {
    const { id } = await start();
    const message = await post(`/conversations/${id}/messages`, { content: "a" });
    await expectHidden(stranger, "/conversations", id, { title: "theirs" });
    for (const [method, path, body] of [
      ["GET", "messages"],
      ["POST", "messages", { content: "a" }],
      ["GET", `messages/${message.id}`],
      ["PUT", `messages/${message.id}`, { content: "b" }],
      ["DELETE", `messages/${message.id}`],
      ["POST", "end", {}],
    ] as const)
      expect((await stranger(method, `/conversations/${id}/${path}`, body)).status).toBe(404);
    const named = (one: string) => ({ roomId: one });
    await expectUnknownInside(stranger, "POST", "/conversations", roomId, named);
    await expectUnknownInside(stranger, "POST", "/conversations/CreateLiveConversation", roomId, named);
    const theirs = (await stranger("POST", "/rooms", {})).body;
    const owned = (ownerId: string) => ({ roomId: theirs.id, ownerId });
    await expectUnknownInside(stranger, "POST", "/conversations", callerId, owned);
  });

  it("is refused without a room, and where its room is none", async () => {
    expect((await api.call("POST", "/conversations", {})).body).toMatchObject({
      details: [{ path: "roomId" }],
    });
    expect((await api.call("POST", "/conversations", { roomId: "room_x" })).status).toBe(404);
  });
});
