import { sql } from "kysely";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type EventStreamReader, readEventStream } from "../support/event-stream.ts";
import { startTestSpine, type TestSpine } from "../support/spine.ts";

let spine: TestSpine;
let token: string;
beforeAll(async () => {
  spine = await startTestSpine();
  token = await spine.api.keyWith("apps.read");
});
afterAll(() => spine[Symbol.asyncDispose]());

let readers: EventStreamReader[] = [];
afterEach(async () => {
  await Promise.all(readers.map((reader) => reader.close().catch(() => {})));
  readers = [];
});

const request = (path: string, headers: Record<string, string> = {}) =>
  Promise.resolve(
    spine.api.app.request(`/v1/apps/${path}`, { headers: { authorization: `Bearer ${token}`, ...headers } }),
  );

async function follow(appId: string, options: { type?: string; after?: string } = {}) {
  const query = options.type === undefined ? "" : `?type=${options.type}`;
  const headers = options.after === undefined ? {} : { "last-event-id": options.after };
  const reader = readEventStream(await request(`${appId}/events/stream${query}`, headers));
  readers.push(reader);
  return reader;
}

const TYPES = ["a", "b", "c"];
const events = TYPES.map((type) => ({ type, typePath: "$.type", idPath: "$.n" }));

async function install() {
  const app = await spine.install({ uid: "in", kind: "webhook", events });
  const channelId: string = app.channels[0].id;
  let n = 0;
  return {
    appId: app.id as string,
    channelId,
    /** Sends so many, each of the next type in turn; answers their numbers. */
    async send(count: number, more: object = {}): Promise<number[]> {
      const sent: number[] = [];
      for (let i = 0; i < count; i++) {
        const type = TYPES[n % TYPES.length];
        await spine.send(channelId, { type, n, ...more });
        sent.push(n++);
      }
      return sent;
    },
  };
}

const numberOf = ({ data = "" }: { data: string | undefined }): number => JSON.parse(data).data.n;
const sorted = (numbers: readonly number[]) => [...numbers].sort((a, b) => a - b);

/** Of each topic in order. */
function expectInOrder(numbers: readonly number[]): void {
  for (const rest of [0, 1, 2]) {
    const ofTopic = numbers.filter((n) => n % 3 === rest);
    expect(ofTopic).toEqual(sorted(ofTopic));
  }
}

describe("the stream of an app's events", () => {
  it("begins now, and gives each event as it is answered by itself", async () => {
    const { appId, channelId, send } = await install();
    await send(3);
    const response = await request(`${appId}/events/stream`);
    expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    const reader = readEventStream(response);
    readers.push(reader);
    const text = '{"type":"a",\r\n "n":9007199254740993,\n\r"x":"line\\nend"}';
    const outcome = await spine.send(channelId, text);
    const [event] = await reader.take(1);
    const place = `${encodeURIComponent(outcome.events[0]?.topic ?? "")}/${outcome.events[0]?.entryId}`;
    const { body } = await spine.api.call("GET", `/apps/${appId}/events/${place}`);
    expect(JSON.parse(event?.data ?? "")).toEqual(body);
    expect(event?.data).toContain("9007199254740993");
  });

  it("takes no place for a HEAD, which nobody reads on", async () => {
    const { appId } = await install();
    const authorization = `Bearer ${token}`;
    for (let i = 0; i < 21; i++) {
      const path = `/v1/apps/${appId}/events/stream`;
      const head = await spine.api.app.request(path, { method: "HEAD", headers: { authorization } });
      expect([head.status, head.body]).toEqual([200, null]);
      expect(head.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    }
    await follow(appId);
  });

  it("gives events of the type alone that is asked for", async () => {
    const { appId, send } = await install();
    const reader = await follow(appId, { type: "b" });
    await send(7);
    expect((await reader.take(2)).map(numberOf)).toEqual([1, 4]);
  });

  it("goes on anywhere it was left, over several topics: nothing is missing, nothing comes twice", async () => {
    const { appId, send } = await install();
    const sent: number[] = [];
    const seen: number[] = [];
    let after: string | undefined;
    for (const take of [0, 1, 5, 0, 13, 2, 30, 1]) {
      const reader = await follow(appId, after === undefined ? {} : { after });
      sent.push(...(await send(12)));
      const wanted = Math.min(take, sent.length - seen.length);
      seen.push(...(await reader.take(wanted)).map(numberOf));
      after = await reader.lastId();
      await reader.close();
    }
    const reader = await follow(appId, { after: after ?? "" });
    seen.push(...(await reader.take(sent.length - seen.length)).map(numberOf));
    expect(sorted(seen)).toEqual(sent);
    expectInOrder(seen);
  });

  it("follows the topic of a definition that is new within two seconds", async () => {
    const { appId, channelId } = await install();
    const reader = await follow(appId);
    const path = `/apps/${appId}/channels/${channelId}`;
    await spine.api.call("PUT", path, { events: [...events, { type: "d", typePath: "$.type" }] });
    await spine.send(channelId, { type: "d", n: 42 });
    const startedAt = performance.now();
    expect((await reader.take(1)).map(numberOf)).toEqual([42]);
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  });

  it("holds little for a reader that takes nothing, and leaves nothing out when it reads on", async () => {
    const { appId, send } = await install();
    const slow = await follow(appId);
    const quick = await follow(appId);
    const filler = "x".repeat(20_000);
    const sent = await send(150, { filler });
    expect(sorted((await quick.take(150)).map(numberOf))).toEqual(sent);
    const seen = (await slow.take(150)).map(numberOf);
    expect(sorted(seen)).toEqual(sent);
    expectInOrder(seen);
    // Both are live again.
    await send(1);
    expect(await slow.take(1)).toHaveLength(1);
  });

  it("ends when its key is revoked, within five seconds, when its app is deleted, and for no other reason", async () => {
    const { appId, send } = await install();
    const other = await install();
    const own = token;
    token = await spine.api.keyWith("apps.read", "audit.read");
    const doomed = await follow(appId);
    token = own;
    const stays = await follow(appId);
    const orphan = await follow(other.appId);
    const { db } = spine.api.database;
    const revokedAt = new Date();
    await db
      .updateTable("apiKeys")
      .set({ revokedAt })
      .where(sql<boolean>`'audit.read' = any(permissions)`)
      .execute();
    await spine.api.call("DELETE", `/apps/${other.appId}`);
    expect(await doomed.next()).toBeUndefined();
    expect(await orphan.next()).toBeUndefined();
    expect(Date.now() - revokedAt.getTime()).toBeLessThan(5_500);
    await send(1);
    expect(await stays.take(1)).toHaveLength(1);
  });

  it("is had so often by one key, and again when one is given back", async () => {
    const { appId } = await install();
    const own = token;
    token = await spine.api.keyWith("apps.read");
    for (let i = 0; i < 20; i++) await follow(appId);
    const refused = await request(`${appId}/events/stream`);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "10"]);
    await readers.pop()?.close();
    await follow(appId);
    token = own;
    await follow(appId);
  });

  it("is refused as any other request is", async () => {
    const { appId } = await install();
    for (const id of ["x", "1.2", "1.abcdefgh:1", `1${".abcdefgh:1-1".repeat(101)}`, "1.abcdefgh:01-1"]) {
      const { status } = await request(`${appId}/events/stream`, { "last-event-id": id });
      expect([id, status]).toEqual([id, 400]);
    }
    const as = async (key: string) =>
      (await request(`${appId}/events/stream`, { authorization: `Bearer ${key}` })).status;
    expect(await as(await spine.api.strangerKey())).toBe(404);
    expect(await as(await spine.api.keyWith("blueprints.read"))).toBe(403);
    expect(await as("nobody")).toBe(401);
  });
});
