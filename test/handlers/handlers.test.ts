import { createServer } from "node:http";
import type { LookupFunction } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { sql } from "kysely";
import { afterEach, describe, expect, it } from "vitest";
import { createAppendedListeners } from "../../src/bus/publish/publish.ts";
import { createEventCursors } from "../../src/bus/topics/event-cursors.ts";
import { createTopicReader } from "../../src/bus/topics/read-after.ts";
import { createAgents } from "../../src/handlers/agents.ts";
import { createAttempt } from "../../src/handlers/attempt.ts";
import { createFilter, type Filter } from "../../src/handlers/filter.ts";
import { type Handlers, type HandlersTiming, startHandlers } from "../../src/handlers/handlers.ts";
import { createRetryQueue } from "../../src/handlers/retry-queue.ts";
import { createValidatorFor } from "../../src/ingest/validators.ts";
import { createLog } from "../../src/log.ts";
import { createOutbound } from "../../src/net/create-outbound.ts";
import { createTestChanges } from "../support/changes.ts";
import { givenChannel } from "../support/channels.ts";
import { startHandlerServer } from "../support/handler-server.ts";
import { listenLocally } from "../support/local-server.ts";
import { opened } from "../support/opened.ts";
import { sharedSchemas } from "../support/schemas.ts";
import { startTestSpine } from "../support/spine.ts";
import { until } from "../support/until.ts";

let lines: string[];
/** Number of events that a `when` excluded, since the last start. */
let ignored = 0;
let handlers: Handlers | undefined;
/** 10.0.0.0/8 is allowed when a handler is subscribed, but no longer when it is called. */
const spine = opened(() => startTestSpine({ allowNetworks: ["127.0.0.0/8", "10.0.0.0/8"] }));
const handler = opened(startHandlerServer);
const open = opened(() => new AsyncDisposableStack());
afterEach(async () => {
  await handlers?.[Symbol.asyncDispose]();
  handlers = undefined;
  aheadMs = 0;
});

const HOUR_MS = 3_600_000;
const FAST: HandlersTiming = {
  firstRetryMs: 10,
  mostRetryMs: 40,
  giveUpAfterMs: HOUR_MS,
  breakerMs: 10,
  deadAfterMs: HOUR_MS,
  sweepEveryMs: 50,
  jobLockMs: HOUR_MS,
};
/** Offset of the clock, for reaching the time at which delivery is given up. */
let aheadMs = 0;
const clock = () => Date.now() + aheadMs;

const evaluateWhen: Filter = createFilter({ validatorFor: createValidatorFor(sharedSchemas()) });

function start(timing: Partial<HandlersTiming> = {}, filter = evaluateWhen): Handlers {
  const { redis, queue, api } = spine;
  lines = [];
  ignored = 0;
  const outbound = open.use(createOutbound({ allowNetworks: ["127.0.0.0/8"], lookup: noNames }));
  const credentialsOf = () => {
    throw new Error("no handler here has a connection");
  };
  const log = createLog({ level: "debug", destination: { write: (line) => void lines.push(line) } });
  const { db } = api.database;
  const agents = open.use(
    createAgents({
      ...{ db, outbound, clock, log },
      cursors: createEventCursors(api.keyring),
      reader: createTopicReader({ redis }),
      messageId: "event",
      baseUrl: "http://inlet.example/v1",
      onEnded: () => {},
    }),
  );
  handlers = startHandlers({
    redis,
    agents,
    queue,
    clock,
    observe: () => {},
    filter,
    onIgnored: () => void ignored++,
    timing: { ...FAST, ...timing },
    db,
    changes: createTestChanges(),
    appended: createAppendedListeners(),
    keyring: api.keyring,
    retries: createRetryQueue(queue),
    attempt: createAttempt({ outbound, credentialsOf, clock, ...agents }),
    log,
  });
  return handlers;
}

interface Subscribed {
  readonly id: string;
  readonly path: string;
  readonly topics: readonly string[];
  readonly secret: string;
}

/** Installs an app with two event types, and a subscription with a handler for each given path. */
const subscribe = (...paths: string[]) =>
  subscribeWith(...paths.map((path) => ({ url: handler.urlOf(path) })));

async function subscribeWith(...settings: object[]) {
  const events = ["a", "b"].map((type) => ({ type, typePath: "$.type", idPath: "$.id" }));
  const channel = await givenChannel(spine, { events });
  const subscriptions: Subscribed[] = [];
  for (const one of settings) {
    const { when, ...own } = one as { readonly when?: object };
    const body = { eventUid: "*", handler: own, ...(when && { when }) };
    const {
      id,
      topics,
      handler: made,
    } = await spine.api.call.post(`${channel.appPath}/events/subscribe`, body);
    subscriptions.push({ id, topics, secret: made.secret, path: `${channel.appPath}/subscriptions/${id}` });
  }
  const send = async (type: string, id: string) => (await channel.send({ type, id })).events[0];
  return { subscriptions: subscriptions as [Subscribed, ...Subscribed[]], send };
}

const byType = (a: { readonly type: string }, b: { readonly type: string }): number =>
  a.type.localeCompare(b.type);

const idsAt = (path: string): string[] => handler.at(path).map(({ body }) => JSON.parse(body).id);

/** A DNS lookup that never resolves a name. */
const noNames: LookupFunction = (_name, _options, callback) =>
  callback(Object.assign(new Error("no name is known here"), { code: "ENOTFOUND" }), "");

describe("a handler that cannot be called", () => {
  it.each([
    ["blocked", () => "http://10.0.0.1/in", /INLET_ALLOW_NETWORKS/],
    ["unresolved", () => "http://handler.example/in", /DNS/],
    ["refused", () => "http://127.0.0.1:1/in", /host and port/],
    ["tls", () => handler.urlOf("/tls").replace("http:", "https:"), /TLS/],
    ["timeout", () => handler.urlOf("/slow"), /timeoutMs/],
    ["http", () => handler.urlOf("/failing"), /^The handler responded 503\. /],
  ])("shows the error and a suggested fix on its subscription and in the log: %s", async (code, url, remedy) => {
    handler.answers.set("/failing", () => ({ status: 503 }));
    handler.answers.set("/slow", () => "hang");
    // A slow machine needs a long timeout, except in the case that tests the timeout.
    const timeoutMs = code === "timeout" ? 500 : 60_000;
    const { subscriptions, send } = await subscribeWith({ url: url(), timeoutMs });
    const [{ path }] = subscriptions;
    expect(await spine.api.call.get(path)).toMatchObject({ lastError: null });
    start();
    await send("a", "1");
    const error = async () => (await spine.api.call.get(path)).lastError;
    await until(async () => (await error()) !== null, { everyMs: 50 });
    expect(await error()).toEqual({
      code,
      at: expect.stringMatching(/^\d{4}-.*Z$/),
      message: expect.stringMatching(remedy),
    });
    const told = lines
      .map((line) => JSON.parse(line))
      .find(({ event }) => event === "handler.attempt_failed");
    expect(told).toMatchObject({ code, subscription: path.split("/").at(-1) });
    expect(told.reason).toMatch(remedy);
    await spine.api.call.delete(path);
  });
});

it("test events are sent only to handlers that enable testEvents, and are acknowledged for all other handlers", async () => {
  const asking = { url: handler.urlOf("/asking"), testEvents: true };
  const { subscriptions, send } = await subscribeWith({ url: handler.urlOf("/others") }, asking);
  start();
  const appPath = subscriptions[0].path.replace(/\/subscriptions.*/, "");
  await spine.api.call.post(`${appPath}/channels/main/test`, { body: '{"type":"a","id":"tried"}' });
  await send("a", "real");
  await until(() => idsAt("/others").length > 0 && idsAt("/asking").length > 1);
  expect([idsAt("/others"), idsAt("/asking").sort()]).toEqual([["real"], ["real", "tried"]]);
  for (const { path } of subscriptions)
    await until(async () => {
      const { lag, pending } = await spine.api.call.get(`${path}/lag`);
      return lag + pending === 0;
    });
});

describe("an event that its handler does not accept for 24 hours", () => {
  it("becomes a dead letter that lists all attempts and can be listed, filtered, redriven and deleted", async () => {
    let isMended = false;
    handler.answers.set("/dead", () => ({ status: isMended ? 200 : 500 }));
    const { subscriptions, send } = await subscribe("/dead");
    const [{ path, id, secret }] = subscriptions;
    start();
    for (const [type, event] of [
      ["a", "1"],
      ["a", "2"],
      ["a", "3"],
      ["b", "4"],
    ] as const)
      await send(type, event);
    const letters = `${path}/dead-letters`;
    await until(() => handler.at("/dead").length >= 8);
    expect(await spine.api.call.get(letters)).toEqual([]);
    aheadMs = 2 * HOUR_MS;
    await until(async () => (await spine.api.call.get(letters)).length === 4, { everyMs: 50 });

    // Dead letters appear in any order, because the delays between attempts are random.
    const [first, ...others] = (await spine.api.call.get(letters)).sort(byType);
    expect(first).toMatchObject({ subscriptionId: id, reason: "HTTP 500", event: { specversion: "1.0" } });
    for (const { attempts } of [first, ...others]) {
      expect(attempts.length).toBeGreaterThan(1);
      for (const one of attempts) expect(one).toMatchObject({ status: 500, code: "http" });
    }
    expect(await spine.api.call.get(`${letters}?type=b`)).toMatchObject([{ type: "b" }]);
    expect(await spine.api.call.get(`${letters}?to=2020-01-01T00:00:00Z`)).toEqual([]);
    expect(await spine.api.call.get(`${letters}/${first.id}`)).toEqual(first);
    // Neither the log nor a dead letter contains the secret.
    expect(lines.join() + JSON.stringify([first, ...others])).not.toContain(secret.slice(6));

    isMended = true;
    expect(await spine.api.call.post(`${letters}/redrive`, { type: "a", dryRun: true })).toEqual({
      matched: 3,
      redriven: 0,
      breaksOrder: false,
    });
    expect(await spine.api.call.get(letters)).toHaveLength(4);
    await spine.api.call.post(`${letters}/${first.id}/redrive`, {});
    await until(() => handler.taken("/dead").length === 1);
    expect(handler.taken("/dead")[0]?.body).toBe(first.event.data);
    expect(await spine.api.call.post(`${letters}/redrive`, { type: "a", limit: 1 })).toEqual({
      matched: 2,
      redriven: 1,
      breaksOrder: false,
    });
    await until(() => handler.taken("/dead").length === 2);
    const [, last] = await spine.api.call.get(letters);
    await spine.api.call.delete(`${letters}/${last.id}`);
    expect((await spine.api.call("GET", `${letters}/${last.id}`)).status).toBe(404);
    expect(await spine.api.call.get(letters)).toHaveLength(1);
  });

  it("stays in the retry queue while the database cannot store a dead letter, and becomes a dead letter afterwards", async () => {
    handler.answers.set("/unwritten", () => ({ status: 500 }));
    const { subscriptions, send } = await subscribe("/unwritten");
    const { db } = spine.api.database;
    await sql`ALTER TABLE dead_letters RENAME TO dead_letters_away`.execute(db);
    try {
      start({ giveUpAfterMs: 0 });
      await send("a", "1");
      await until(() => lines.some((line) => line.includes("the retry of an event was postponed")));
    } finally {
      await sql`ALTER TABLE dead_letters_away RENAME TO dead_letters`.execute(db);
    }
    await until(async () => (await spine.api.call.get(`${subscriptions[0].path}/dead-letters`)).length === 1);
  });
});

describe("a handler's concurrency", () => {
  it("limits the total number of first attempts and retries in flight", async () => {
    let [under, most] = [0, 0];
    const server = createServer(async (request, response) => {
      most = Math.max(most, ++under);
      request.resume();
      // The first attempt waits for a second one. Each attempt lasts long enough for others to arrive in the meantime.
      await until(() => most >= 2);
      await delay(10);
      under--;
      response.writeHead(answered++ % 3 === 0 ? 500 : 204).end();
    });
    let answered = 0;
    const { origin } = open.use(await listenLocally(server));
    const url = `${origin}/`;
    const { send } = await subscribeWith({ url, concurrency: 2 });
    start();
    for (let n = 0; n < 15; n++) await send("a", String(n));
    await until(() => answered >= 20);
    expect(most).toBe(2);
  });
});

describe("a delivery attempt that is in flight when its gateway stops", () => {
  it("is made again by another gateway", async () => {
    handler.answers.set("/stopped", (_, times) =>
      times === 1 ? { status: 500 } : times === 2 ? "hang" : { status: 200 },
    );
    const { send } = await subscribe("/stopped");
    const first = start({ jobLockMs: 1_000 });
    await send("a", "1");
    await until(() => handler.at("/stopped").length === 2);
    await first[Symbol.asyncDispose]();
    start({ jobLockMs: 1_000 });
    await until(() => handler.taken("/stopped").length === 1);
  });
});

describe("a replay of events", () => {
  it("returns the number of selected events before it starts, and sends the events only to the handler of its subscription", async () => {
    const { subscriptions, send } = await subscribe("/one", "/other");
    const [{ path }] = subscriptions;
    start();
    const sent = [];
    for (const [type, id] of [
      ["a", "1"],
      ["b", "2"],
      ["a", "3"],
      ["b", "4"],
      ["a", "5"],
    ] as const)
      sent.push(await send(type, id));
    await until(() => handler.at("/one").length === 5 && handler.at("/other").length === 5);
    const replay = async (body: object, headers?: Record<string, string>) =>
      (await spine.api.call("POST", `${path}/replay`, body, headers)).body;

    expect(await replay({ dryRun: true })).toEqual({ matched: 5, replayed: 0, next: null });
    expect(await replay({ types: ["b"], dryRun: true })).toMatchObject({ matched: 2 });
    expect(await replay({ to: "2020-01-01T00:00:00Z" })).toEqual({ matched: 0, replayed: 0, next: null });
    const half = await replay({ limit: 2 });
    expect(half).toMatchObject({ matched: 5, replayed: 2 });
    await until(() => handler.at("/one").length === 7);
    expect(idsAt("/one").slice(5).toSorted()).toEqual(["1", "2"]);
    expect(await replay({ after: half.next })).toEqual({ matched: 3, replayed: 3, next: null });
    await until(() => handler.at("/one").length === 10);
    expect(idsAt("/one").slice(7).toSorted()).toEqual(["3", "4", "5"]);

    const place = { topic: sent[3]?.topic, entryId: sent[3]?.entryId };
    expect(await replay({ entries: [place, place] })).toEqual({ matched: 1, replayed: 1, next: null });
    await until(() => handler.at("/one").length === 11);
    expect(idsAt("/one").at(-1)).toBe("4");

    const once = { "Idempotency-Key": "once" };
    const answers = [await replay({ types: ["b"] }, once), await replay({ types: ["b"] }, once)];
    expect(answers).toEqual([{ matched: 2, replayed: 2, next: null }, answers[0]]);
    await replay({ entries: [place] });
    await until(() => handler.at("/one").length >= 14);
    await until(async () => (await spine.server.client.keys("inlet:{jobs.handlers}*:rp_*")).length === 0);
    expect([handler.at("/one").length, handler.at("/other").length]).toEqual([14, 5]);
  });

  it("is rejected if its parameters are invalid, a selected event does not exist, or the subscription has no handler", async () => {
    const { subscriptions } = await subscribe("/refused");
    const [{ path, topics }] = subscriptions;
    const refusal = async (of: string, body: object) => {
      const { status, paths } = await spine.api.call.expectRejection("POST", `${of}/replay`, body);
      return [status, paths?.[0]];
    };
    const place = { topic: topics[0], entryId: "1-1" };
    expect(await refusal(path, { entries: [place] })).toEqual([404, undefined]);
    expect(await refusal(path, { entries: [place], from: "2020-01-01T00:00:00Z" })).toEqual([400, "from"]);
    expect(await refusal(path, { entries: [{ ...place, entryId: "x" }] })).toEqual([
      400,
      "entries[0].entryId",
    ]);
    expect(await refusal(path, { after: "x" })).toEqual([400, "after"]);
    expect(await refusal(path, { limit: 1_001 })).toEqual([400, "limit"]);
    const app = path.split("/").slice(0, 3).join("/");
    const { id } = await spine.api.call.post(`${app}/events/subscribe`, { eventUid: "*" });
    expect(await refusal(`${app}/subscriptions/${id}`, {})).toEqual([409, undefined]);
  });
});

it("an event that is deleted while it waits for a retry is not delivered again", async () => {
  let tries = 0;
  handler.answers.set("/erased", ({ body }) => {
    if (JSON.parse(body).id === "gone") tries++;
    return { status: JSON.parse(body).id === "gone" ? 500 : 200 };
  });
  const { subscriptions, send } = await subscribe("/erased");
  const [{ path }] = subscriptions;
  start({ firstRetryMs: 300, mostRetryMs: 300, breakerMs: 1 });
  const event = await send("a", "gone");
  await until(() => tries > 0);
  const appPath = path.slice(0, path.indexOf("/subscriptions"));
  const at = `${appPath}/events/${encodeURIComponent(event?.topic ?? "")}/${event?.entryId}`;
  await spine.api.call.delete(at);
  const before = tries;
  // The id of a job ends with the entry id and the number of attempts.
  await until(async () => (await spine.server.client.keys(`*.${event?.entryId}.*`)).length === 0);
  // One attempt may have been in flight when the event was deleted.
  expect(tries - before).toBeLessThanOrEqual(1);
});

describe("the `when` of a subscription", () => {
  const when = {
    properties: { type: { const: "a" }, data: { properties: { id: { pattern: "^1" } }, required: ["id"] } },
    required: ["data"],
  };

  it("lets only matching events reach the handler, and acknowledges and counts the others, which the lag includes", async () => {
    const { subscriptions, send } = await subscribeWith({ url: handler.urlOf("/filtered"), when });
    const [{ path }] = subscriptions;
    for (const id of ["10", "20", "11"]) await send("a", id);
    await send("b", "12");
    expect(await spine.api.call.get(path)).toMatchObject({ when, lag: 4, handler: { secret: null } });
    start();
    await until(async () => {
      const { lag, pending } = await spine.api.call.get(path);
      return lag === 0 && pending === 0;
    });
    expect(idsAt("/filtered").toSorted()).toEqual(["10", "11"]);
    expect(ignored).toBe(2);
  });

  it("also applies to replays", async () => {
    const { subscriptions, send } = await subscribeWith({ url: handler.urlOf("/replayed"), when });
    const [{ path }] = subscriptions;
    await send("a", "20");
    await send("a", "10");
    start();
    await until(() => idsAt("/replayed").length === 1);
    expect(await spine.api.call.post(`${path}/replay`, {})).toMatchObject({ matched: 2, replayed: 2 });
    await until(() => idsAt("/replayed").length === 2 && ignored === 2);
    expect(idsAt("/replayed")).toEqual(["10", "10"]);
  });

  it("sees attributes, extensions and text, and large data, which a worker thread parses", async () => {
    const { signal } = new AbortController();
    const decide = (when: object, more: readonly string[]) =>
      evaluateWhen(
        { organizationId: "o", handler: { when } } as unknown as Parameters<Filter>[0],
        { fields: ["specversion", "1.0", "id", "1", "source", "/s", "type", "a", ...more] },
        { signal },
      );
    const is = (value: unknown) => ({ properties: { data: { const: value } }, required: ["data"] });
    expect(await decide({ properties: { ext: { const: "x" } } }, ["ext", "x"])).toBe("wanted");
    expect(await decide({ required: ["data"] }, ["data_base64", "AA=="])).toBe("ignored");
    const text = ["datacontenttype", "text/plain", "data", "1"];
    expect(await decide(is("1"), text)).toBe("wanted");
    const large = { list: Array.from({ length: 50_000 }, (_, n) => n) };
    const json = ["datacontenttype", "application/json", "data", JSON.stringify(large)];
    const has = (count: number) => ({ properties: { data: { properties: { list: { maxItems: count } } } } });
    expect(await decide(has(50_000), json)).toBe("wanted");
    expect(await decide(has(49_999), json)).toBe("ignored");
    const long = ["datacontenttype", "text/plain", "data", "x".repeat(200_000)];
    expect(await decide(is("x".repeat(200_000)), long)).toBe("wanted");
    const broken = ["datacontenttype", "application/json", "data", `[${"1".repeat(200_000)}`];
    expect(await decide(is("x"), broken)).toBe("undecided");
  });

  it("makes an event on which it cannot be evaluated a dead letter, without a request", async () => {
    const { subscriptions, send } = await subscribeWith({ url: handler.urlOf("/undecided"), when: true });
    const [{ id, path }] = subscriptions;
    start({}, () => "undecided");
    await send("a", "1");
    await until(async () => (await spine.api.call.get(`${path}/dead-letters`)).length === 1);
    expect(await spine.api.call.get(`${path}/dead-letters`)).toMatchObject([
      {
        subscriptionId: id,
        reason: "`when` could not be evaluated",
        attempts: [{ code: "filterFailed", status: null }],
      },
    ]);
    await until(async () => (await spine.api.call.get(path)).lastError?.code === "filterFailed");
    expect(idsAt("/undecided")).toEqual([]);
  });
});
