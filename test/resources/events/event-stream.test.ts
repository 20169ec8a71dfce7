import { once } from "node:events";
import { EventSource } from "eventsource";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { givenChannel } from "../../support/channels.ts";
import { type EventStreamReader, readEventStream } from "../../support/event-stream.ts";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";

let token: string;
const spine = opened(startTestSpine);
beforeAll(async () => {
  token = await spine.api.keyWith("apps.read");
});

let readers: EventStreamReader[] = [];
afterEach(async () => {
  await Promise.all(readers.map((reader) => reader.close().catch(() => {})));
  readers = [];
});

interface Options {
  readonly method?: string;
  readonly key?: string;
  readonly type?: string;
  readonly after?: string;
}

async function request(appId: string, { method = "GET", key = token, type, after }: Options = {}) {
  const path = `/v1/apps/${appId}/events/stream${type === undefined ? "" : `?type=${type}`}`;
  const authorization = `Bearer ${key}`;
  const headers = { authorization, ...(after !== undefined && { "last-event-id": after }) };
  return spine.api.app.request(path, { method, headers });
}

async function follow(appId: string, options: Options = {}): Promise<EventStreamReader> {
  const reader = readEventStream(await request(appId, options));
  readers.push(reader);
  return reader;
}

const TYPES = ["a", "b", "c"];
const definitions = TYPES.map((type) => ({ type, typePath: "$.type", idPath: "$.n" }));

async function install() {
  const channel = await givenChannel(spine, { uid: "in", events: definitions });
  let n = 0;
  return {
    appId: channel.appId,
    channel,
    /** Sends events of the three types in turn. Returns their numbers. */
    async send(count: number, more: object = {}): Promise<number[]> {
      const sent: number[] = [];
      for (let i = 0; i < count; i++) {
        const type = TYPES[n % TYPES.length];
        await channel.send({ type, n, ...more });
        sent.push(n++);
      }
      return sent;
    },
  };
}

/** Rewrites the entries of an app's topics as if they had been appended at another time. */
async function moveEntries(appId: string, timeMs: number): Promise<void> {
  const { client } = spine.server;
  const topics = await spine.api.database.db
    .selectFrom("topics")
    .select("topic")
    .where("appId", "=", appId)
    .execute();
  for (const { topic } of topics) {
    const entries = await client.xrange(topic, "-", "+");
    await client.del(topic);
    for (const [, fields] of entries) await client.xadd(topic, `${timeMs}-*`, ...fields);
  }
}

const numberOf = ({ data = "" }: { data: string | undefined }): number => JSON.parse(data).data.n;
const sorted = (numbers: readonly number[]) => [...numbers].sort((a, b) => a - b);

/** Checks the order per event type. Each type has its own topic, and order is guaranteed only within a topic. */
function expectInOrder(numbers: readonly number[]): void {
  for (const rest of [0, 1, 2]) {
    const ofTopic = numbers.filter((n) => n % 3 === rest);
    expect(ofTopic).toEqual(sorted(ofTopic));
  }
}

describe("the event stream (SSE) of an app", () => {
  it("starts with new events, and sends each event in the same form as the operation getEvent", async () => {
    const { appId, channel, send } = await install();
    await send(3);
    const response = await request(appId);
    expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    const reader = readEventStream(response);
    readers.push(reader);
    const text = '{"type":"a",\r\n "n":9007199254740993,\n\r"x":"line\\nend"}';
    const outcome = await channel.send(text);
    const [event] = await reader.take(1);
    const place = `${encodeURIComponent(outcome.events[0]?.topic ?? "")}/${outcome.events[0]?.entryId}`;
    expect(JSON.parse(event?.data ?? "")).toEqual(await spine.api.call.get(`/apps/${appId}/events/${place}`));
    expect(event?.data).toContain("9007199254740993");
  });

  it("sends the reader's position at the start as an event that EventSource does not ignore", async () => {
    const { appId } = await install();
    const source = new EventSource("http://gateway/", { fetch: () => request(appId) });
    const [{ data, lastEventId }] = (await once(source, "position")) as [MessageEvent];
    source.close();
    expect([data, lastEventId]).toEqual(["{}", expect.stringMatching(/^\d+$/)]);
  });

  it("sends only events of the requested type", async () => {
    const { appId, send } = await install();
    const reader = await follow(appId, { type: "b" });
    await send(7);
    expect((await reader.take(2)).map(numberOf)).toEqual([1, 4]);
  });

  it("resumes after the Last-Event-ID across several topics, without skipping or repeating events", async () => {
    const { appId, send } = await install();
    const sent: number[] = [];
    const seen: number[] = [];
    let after: string | undefined;
    for (const take of [0, 1, 5, 0, 13]) {
      const reader = await follow(appId, after === undefined ? {} : { after });
      sent.push(...(await send(6)));
      seen.push(...(await reader.take(take)).map(numberOf));
      after = await reader.lastId();
      await reader.close();
    }
    const reader = await follow(appId, { after: after ?? "" });
    seen.push(...(await reader.take(sent.length - seen.length)).map(numberOf));
    expect(sorted(seen)).toEqual(sent);
    expectInOrder(seen);
  });

  it("sends all missed events to a reader whose previous connection ended before the reader received any event", async () => {
    const { appId, send } = await install();
    const one = { type: "a" };
    const other = await follow(appId);
    // The second event ensures that this worker knows up to which time it has read all topics.
    for (const n of [0, 1]) {
      await send(1, one);
      expect((await other.take(1)).map(numberOf)).toEqual([n]);
    }
    const hourAgoMs = Date.now() - 3_600_000;
    await moveEntries(appId, hourAgoMs);
    const cut = await follow(appId, { after: String(hourAgoMs) });
    const after = await cut.lastId();
    await cut.close();
    const reader = await follow(appId, { after });
    await send(1, one);
    // Events of one topic arrive in order, so a reader with the last event has also received all earlier ones.
    const seen: number[] = [];
    while (seen.at(-1) !== 2) seen.push(...(await reader.take(1)).map(numberOf));
    expect(seen).toEqual([0, 1, 2]);
  });

  it("leaves events in Redis while a reader is slow, and sends all of them later", async () => {
    const { appId, channel, send } = await install();
    const slow = await follow(appId);
    const quick = await follow(appId);
    // Sends three times the size of a reader's buffer, then an event that is deleted before the slow reader reaches it.
    const filler = "x".repeat(20_000);
    const sent = await send(39, { filler });
    const { events } = await channel.send({ type: "a", n: 1_000, filler });
    expect(sorted((await quick.take(40)).map(numberOf))).toEqual([...sent, 1_000]);
    for (const { topic, entryId } of events) await spine.server.client.xdel(topic, entryId);
    const seen = (await slow.take(39)).map(numberOf);
    expect(sorted(seen)).toEqual(sent);
    expectInOrder(seen);
    const [next] = await send(1);
    for (const reader of [slow, quick]) expect((await reader.take(1)).map(numberOf)).toEqual([next]);
  });

  it("responds to a HEAD request without counting it as an open stream of the API key", async () => {
    const { appId } = await install();
    for (let i = 0; i < 21; i++) {
      const head = await request(appId, { method: "HEAD" });
      expect([head.status, head.body]).toEqual([200, null]);
      expect(head.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    }
    await follow(appId);
  });

  it("rejects the 21st open stream of an API key until one of the other 20 streams ends", async () => {
    const { appId } = await install();
    const key = await spine.api.keyWith("apps.read");
    for (let i = 0; i < 20; i++) await follow(appId, { key });
    const refused = await request(appId, { key });
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "10"]);
    await follow(appId);
    await readers.shift()?.close();
    await follow(appId, { key });
  });

  it("rejects a Last-Event-ID that the API cannot have sent", async () => {
    const { appId } = await install();
    for (const after of ["x", "1.2", "1.abcdefgh:1", `1${".abcdefgh:1-1".repeat(101)}`, "1.abcdefgh:01-1"])
      expect([after, (await request(appId, { after })).status]).toEqual([after, 400]);
  });
});

describe("the event stream (SSE) of an app, with a fake clock,", () => {
  // All tests share one fake clock, so that times remembered by an earlier test stay in the past.
  beforeAll(() => {
    const nowMs = performance.now();
    vi.useFakeTimers({ toFake: ["performance", "setInterval", "clearInterval"] });
    vi.advanceTimersByTime(nowMs);
  });
  afterAll(() => {
    vi.useRealTimers();
  });

  it("includes the topic of a new event definition within two seconds", async () => {
    const { appId, channel, send } = await install();
    const reader = await follow(appId);
    const take = async () => (await reader.take(1)).map(numberOf);
    // A worker lists the topics after a read if the list is due. The second event ensures that it has done so.
    for (const n of [0, 1]) {
      await send(1);
      expect(await take()).toEqual([n]);
    }
    const events = [...definitions, { type: "d", typePath: "$.type" }];
    await spine.api.call.put(`/apps/${appId}/channels/${channel.id}`, { events });
    await channel.send({ type: "d", n: 42 });
    await send(1);
    expect(await take()).toEqual([2]);
    vi.advanceTimersByTime(2_000);
    expect(await take()).toEqual([42]);
  });

  it("ends within five seconds after its API key is revoked, while streams of other API keys continue", async () => {
    const { appId, send } = await install();
    const key = await spine.api.keyWith("apps.read");
    const ended = await follow(appId, { key });
    const kept = await follow(appId, { key: await spine.api.keyWith("apps.read") });
    await spine.api.database.db
      .updateTable("apiKeys")
      .set({ revokedAt: new Date() })
      .where("prefix", "=", key.slice(0, 11))
      .execute();
    vi.advanceTimersByTime(5_000);
    expect(await ended.next()).toBeUndefined();
    await send(1);
    expect(await kept.take(1)).toHaveLength(1);
  });

  it("ends within two seconds after its app is deleted, while the streams of other apps continue", async () => {
    const [deleted, other] = [await install(), await install()];
    const ended = await follow(deleted.appId);
    const kept = await follow(other.appId);
    await spine.api.call.delete(`/apps/${deleted.appId}`);
    vi.advanceTimersByTime(2_000);
    expect(await ended.next()).toBeUndefined();
    await other.send(1);
    expect(await kept.take(1)).toHaveLength(1);
  });
});
