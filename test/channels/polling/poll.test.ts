import { afterEach, describe, expect, it, vi } from "vitest";
import type { PollDeps } from "../../../src/channels/polling/poll-source.ts";
import { polling } from "../../../src/channels/polling/polling.ts";
import { readHere } from "../../support/read-here.ts";
import { STATUSES } from "../pull/statuses.ts";
import { type Answer, json, status } from "./answer-server.ts";
import { idsOf, NOW, openedPolls, rows } from "./poll-support.ts";
import type { Config } from "./support.ts";

const { rigOf, server } = openedPolls();
afterEach(() => {
  vi.useRealTimers();
});

describe("a response to a poll", () => {
  it.each(
    STATUSES,
  )("with status %d makes the poll fail (counted as rejection: %s)", async (code, isRejection) => {
    server.answers = [status(code)];
    const end = await rigOf().poll();
    expect(end).toMatchObject({ kind: "failed", code: `http_${code}` });
    expect(end !== undefined && "isRejection" in end).toBe(isRejection);
  });

  it.each<[string, Answer, string]>([
    ["invalid JSON", json('{"rows": ['), "invalid_body"],
    [
      "an incomplete last line",
      (_, r) => r.writeHead(200, { "content-type": "application/x-ndjson" }).end('{"id":1}\n{"id'),
      "invalid_body",
    ],
    ["a web page", (_, r) => r.writeHead(200, { "content-type": "text/html" }).end("<h1>"), "content_type"],
    ["no match of itemsPath", json({}), "items_missing"],
    ["a body over maxResponseBytes", json({ rows: ["x".repeat(2000)] }), "tooLarge"],
    [
      "a truncated body",
      (_, r) => r.writeHead(200, { "content-length": "100" }).write("{", () => r.destroy()),
      "reset",
    ],
    ["a timeout", () => void vi.advanceTimersByTime(60_000), "timeout"],
  ])("with %s makes the poll fail, and the next poll publishes all items", async (_, answer, code) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const rig = rigOf({ maxResponseBytes: 1000, timeouts: { totalMs: 60_000 }, retry: { attempts: 0 } });
    server.answers = [answer, json(rows(1, 2))];
    expect(await rig.poll()).toMatchObject({ kind: "failed", code });
    expect(await rig.poll()).toEqual({ kind: "done" });
    expect(idsOf(rig)).toEqual(["1", "2"]);
  });

  it("yields the values of a JSON text sequence, of which only the new ones are published", async () => {
    const rig = rigOf({ itemsPath: undefined });
    const sequence =
      (...ids: readonly number[]): Answer =>
      (_, r) =>
        r
          .writeHead(200, { "content-type": "application/json-seq" })
          .end(ids.map((id) => `\x1E{\n  "id": ${id}\n}\n`).join(""));
    server.answers = [sequence(1, 2), sequence(1, 2, 3)];
    await rig.poll();
    await rig.poll();
    expect(idsOf(rig)).toEqual(["1", "2", "3"]);
  });

  it("is an error for `successOn` even if it has no items, as error responses of some servers with status 200", async () => {
    const successOn = { path: "$.ok", equals: true };
    server.answers = [json({ ok: false, error: "channel_not_found" })];
    expect(await rigOf({ itemsPath: "$.messages", successOn }).poll()).toMatchObject({
      code: "not_successful",
    });
    server.answers = [json({ ok: true })];
    expect(await rigOf({ itemsPath: "$.messages", successOn }).poll()).toMatchObject({
      code: "items_missing",
    });
  });

  it("makes the poll fail if its status or body does not match the `successOn` setting", async () => {
    const config = { successOn: { statuses: [202], path: "$.ready", equals: true } };
    const rig = rigOf(config);
    server.answers = [
      json({ ready: true, rows: [] }),
      json({ ready: false, rows: [] }, {}, 202),
      json({ ready: true, ...rows(1) }, {}, 202),
    ];
    expect(await rig.poll()).toMatchObject({ code: "http_200" });
    expect(await rig.poll()).toMatchObject({ kind: "failed", code: "not_successful" });
    expect(await rig.poll()).toEqual({ kind: "done" });
    expect(idsOf(rig)).toEqual(["1"]);
  });

  it("with status 204, an empty body or an empty list counts as a page without items", async () => {
    const rig = rigOf({ itemsOptional: true });
    server.answers = [
      (_, r) => r.writeHead(204).end(),
      json("  "),
      json({ rows: [] }),
      json({ rows: null }),
      json({}),
    ];
    for (let polls = 0; polls < 5; polls++) expect(await rig.poll()).toEqual({ kind: "done" });
    expect(rig.deliveries).toEqual([]);
  });
});

describe("a failed request of a poll", () => {
  it("is retried within the same poll after growing waits", async () => {
    const rig = rigOf({ retry: { attempts: 3, initialMs: 100, maxMs: 150 } });
    server.answers = [status(500), (request) => request.socket.destroy(), status(502), json(rows(1))];
    expect(await rig.poll()).toEqual({ kind: "done" });
    expect(rig.waits).toEqual([100, 150, 150]);
  });

  it("is not retried within the same poll for POST, for a response with Retry-After, or for 404", async () => {
    const post = rigOf({ request: { url: `${server.origin}/rows`, method: "POST", body: {} } });
    server.answers = [status(500)];
    await post.poll();
    server.answers = [status(503, { "retry-after": "1" })];
    await rigOf().poll();
    server.answers = [status(404)];
    await rigOf().poll();
    expect(server.requests).toHaveLength(3);
  });

  it("delays the next poll until the time in the server's Retry-After or rate-limit headers", async () => {
    const wait = (code: number, headers: Record<string, string>, config: Partial<Config> = {}) => {
      server.answers = [json(rows(1), { date: new Date(NOW).toUTCString(), ...headers }, code)];
      return rigOf(config).poll();
    };
    expect(await wait(429, { "retry-after": "120" })).toMatchObject({
      code: "http_429",
      notBeforeMs: NOW + 120_000,
    });
    expect(await wait(503, { "retry-after": new Date(NOW + 60_000).toUTCString() })).toMatchObject({
      notBeforeMs: NOW + 60_000,
    });
    const reset = { "x-ratelimit-remaining": "0", "x-ratelimit-reset": String(NOW / 1000 + 90) };
    expect(await wait(403, reset)).toMatchObject({ kind: "failed", notBeforeMs: NOW + 90_000 });
    expect(await wait(200, reset)).toEqual({ kind: "done", notBeforeMs: NOW + 90_000 });
    expect(await wait(429, { "retry-after": "86400" }, { retryAfter: { maxSeconds: 60 } })).toMatchObject({
      notBeforeMs: NOW + 60_000,
    });
    expect(await wait(429, { "retry-after": "60" }, { retryAfter: { honour: false } })).not.toHaveProperty(
      "notBeforeMs",
    );
  });

  it("for a later page keeps the published items, and the next poll skips no item", async () => {
    const pages = rigOf({
      discriminator: { by: "sequence", path: "$.id" },
      request: { url: `${server.origin}/rows`, query: { since: "{{cursor}}" } },
      pagination: { by: "nextUrlPath", path: "$.next" },
      retry: { attempts: 0 },
    });
    server.answers = [
      json({ ...rows(1, 2), next: "/rows?page=2" }),
      status(429, { "retry-after": "5" }),
      json(rows(3)),
    ];
    expect(await pages.poll()).toMatchObject({ kind: "failed", code: "http_429" });
    expect(await pages.poll()).toEqual({ kind: "done" });
    expect(idsOf(pages)).toEqual(["1", "2", "3"]);
    expect(server.requests.map(({ url }) => url)).toEqual(["/rows", "/rows?page=2", "/rows?since=2"]);
  });
});

describe("a delivery of a polling channel", () => {
  it("contains the response text as received, with null in place of already published items", async () => {
    const rig = rigOf({}, { definition: { payloadPath: "$body.account" } });
    server.answers = [
      json('{"account": 1.50, "rows": [{"id":1}, {"id":2.0}]}'),
      json('{"account": 1.50, "rows": [ {"id":3,"n":12345678901234567890} , {"id":1},{"id":2.0} ]}'),
    ];
    await rig.poll();
    await rig.poll();
    expect(String(rig.deliveries[1]?.body)).toBe(
      '{"account": 1.50, "rows": [ {"id":3,"n":12345678901234567890} , null,null ]}',
    );
    expect(rig.log.map(({ id, data }) => [id, data])).toEqual([
      ["1", "1.50"],
      ["2.0", "1.50"],
      ["3", "1.50"],
    ]);
  });

  it.each([
    [{ itemsPath: "$.list.row" }, '{"id":"1"}'],
    [{ itemId: "$.list.row[0].id" }, "<list>"],
  ])("with large XML is parsed in a worker thread into the same events: %j", async (config, data) => {
    const answer = `<list><row><id>1</id></row><row><id>${"x".repeat(20_000)}</id></row></list>`;
    const lanes: string[] = [];
    const readInWorker: PollDeps["readInWorker"] = async (request, lane) => {
      lanes.push(lane);
      return readHere(polling)(request, lane);
    };
    const rig = rigOf({ itemsPath: undefined, ...config }, { readInWorker });
    server.answers = [(_, r) => r.writeHead(200, { "content-type": "application/xml" }).end(answer)];
    await rig.poll();
    expect(lanes).toEqual(["org_1"]);
    expect(rig.log[0]?.data).toContain(data);
  });

  it("publishes only new items of JSON lines, of XML, of a nested path or of a single object", async () => {
    const lines = rigOf({ itemsPath: undefined });
    server.answers = [
      (_, r) => r.writeHead(200, { "content-type": "application/jsonl" }).end('{"id":1}\n'),
      (_, r) =>
        r.writeHead(200, { "content-type": "application/jsonl" }).end('{"id":1}\r\n\nbroken\n{"id":2}'),
    ];
    await lines.poll();
    await lines.poll();
    expect(idsOf(lines)).toEqual(["1", "2"]);
    expect(lines.failures).toBe(1);
    expect(String(lines.deliveries[1]?.body)).toBe('null\nbroken\n{"id":2}\n');

    const xml = rigOf({ itemsPath: "$.list.row", decode: "xml" });
    server.answers = [
      json("<list><row><id>1</id></row></list>"),
      json("<list><row><id>1</id></row><row><id>é</id></row></list>"),
    ];
    await xml.poll();
    await xml.poll();
    expect(xml.log.map(({ data }) => data)).toEqual(['{"id":"1"}', '{"id":"é"}']);

    const nested = rigOf({ itemsPath: "$.groups[*].rows[*]" });
    server.answers = [json({ groups: [rows(1), rows()] }), json({ groups: [rows(2, 1), rows(3)] })];
    await nested.poll();
    await nested.poll();
    expect(idsOf(nested)).toEqual(["1", "2", "3"]);

    const whole = rigOf({ itemsPath: undefined, itemId: undefined, discriminator: { by: "etag" } });
    server.answers = [json('{"v":1.0}'), json('{"v":1.0}'), json('{"v":2}')];
    for (let polls = 0; polls < 3; polls++) await whole.poll();
    expect(whole.log.map(({ data }) => data)).toEqual(['{"v":1.0}', '{"v":2}']);
  });

  it("makes the poll fail if `itemsPath` would match different items once known items are replaced with null", async () => {
    const slice = rigOf({ itemsPath: "$.rows[?@.id >= $.rows[1].id]" });
    server.answers = [json(rows(1, 2)), json(rows(1, 2, 3))];
    await slice.poll();
    expect(await slice.poll()).toMatchObject({ kind: "failed", code: "items_unstable" });
    const typed = rigOf({ itemsPath: "$.rows[?@.id > 1]" });
    server.answers = [json(rows(1, 2, 3)), json(rows(1, 2, 4, 3))];
    await typed.poll();
    await typed.poll();
    expect(idsOf(typed)).toEqual(["2", "3", "4"]);
    const inside = rigOf({ itemsPath: "$..rows" });
    server.answers = [json({ rows: [{ rows: [] }] })];
    expect(await inside.poll()).toMatchObject({ kind: "failed", code: "items_overlap" });
  });

  it("contains at most 500 items, and all deliveries of a poll contain at most `maxItemsPerPoll` items", async () => {
    const many = Array.from({ length: 1200 }, (_, id) => id);
    server.answers = [json(rows(...many))];
    const rig = rigOf({ maxItemsPerPoll: 1100 });
    expect(await rig.poll()).toEqual({ kind: "done", notBeforeMs: NOW });
    expect(rig.log).toHaveLength(1100);
    expect(await rig.poll()).toEqual({ kind: "done" });
    expect(rig.deliveries).toHaveLength(4);
    expect(new Set(idsOf(rig)).size).toBe(1200);
  });
});

describe("a polled feed in XML", () => {
  const xml =
    (text: string, encoding: BufferEncoding = "utf8"): Answer =>
    (_, response) =>
      response.writeHead(200, { "content-type": "application/rss+xml" }).end(Buffer.from(text, encoding));
  const feed = { itemsPath: "$.rss.channel.item", itemId: "$.guid" } as const;
  const items = [
    `<item><guid>1</guid><title>é</title></item>`,
    `<item><guid isPermaLink="false">2</guid><title>b</title></item>`,
    `<item><guid isPermaLink="true"><![CDATA[https://example.com/3]]></guid><title>c</title></item>`,
  ];
  const rss = (encoding: string, ...some: readonly string[]) =>
    `<?xml version="1.0" encoding="${encoding}"?><rss><channel>${some.join("")}</channel></rss>`;

  it("has the same item ids with and without attributes of the guid", async () => {
    const rig = rigOf(feed);
    server.answers = [
      xml(rss("utf-8", ...items)),
      xml(rss("utf-8", ...items.map((item) => item.replace("<title>", "<title a='b'>")))),
    ];
    for (let polls = 0; polls < 2; polls++) expect(await rig.poll()).toEqual({ kind: "done" });
    expect(idsOf(rig)).toEqual(["1", "2", "https://example.com/3"]);
    expect(rig.failures).toBe(0);
  });

  it.each<[string, string, BufferEncoding]>([
    ["UTF-8 declared as UTF-16", "utf-16", "utf8"],
    ["UTF-8 with an unknown encoding", "unicode", "utf8"],
    ["Latin-1", "ISO-8859-1", "latin1"],
    ["UTF-16 without a byte order mark", "utf-16", "utf16le"],
  ])("is read in %s", async (_, declared, encoding) => {
    const rig = rigOf(feed);
    server.answers = [xml(rss(declared, ...items), encoding)];
    expect(await rig.poll()).toEqual({ kind: "done" });
    expect(rig.log[0]?.data).toContain("é");
  });
});

describe("a request of a poll", () => {
  it("has its placeholders filled in, and omits query parameters without a value", async () => {
    const rig = rigOf({
      discriminator: { by: "timestamp", path: "$.at", format: "epochSeconds" },
      request: {
        url: `${server.origin}/a/{{ now | date }}?x={{cursor | iso}}`,
        query: { since: "{{cursor}}", ms: "{{cursor | epochMillis}}", last: "{{lastPollAt}}" },
        headers: { "X-Since": "{{cursor | rfc2822}}" },
      },
    });
    server.answers = [json({ rows: [{ id: 1, at: 1769853600.75 }] })];
    await rig.poll();
    expect(server.requests[0]).toMatchObject({
      url: "/a/2026-01-31?x=1970-01-01T00%3A00%3A00.000Z&since=0&ms=0",
      headers: { "x-since": "Thu, 01 Jan 1970 00:00:00 GMT" },
    });
    await rig.poll();
    expect(server.requests[1]?.url).toBe(
      "/a/2026-01-31?x=2026-01-31T10%3A00%3A00.750Z&since=1769853600&ms=1769853600750&last=2026-01-31T00%3A00%3A00.000Z",
    );
  });

  it("keeps the query of the URL byte for byte, and appends all other parameters with %20 for spaces", async () => {
    const own = "$filter=modified%20gt%202020&flag&tilde=~&plus=a+b&%7e=%2f&after={{cursor | isoSeconds}}";
    const rig = rigOf({
      discriminator: { by: "timestamp", path: "$.at" },
      request: { url: `${server.origin}/rows?${own}`, query: { "the name": "a b+c" } },
      pagination: { by: "cursorToken", path: "$.next", name: "page" },
    });
    server.answers = [json({ rows: [], next: "2 3" }), json({ rows: [] })];
    expect(await rig.poll()).toEqual({ kind: "done" });
    const sent = own.replace("{{cursor | isoSeconds}}", "1970-01-01T00%3A00%3A00Z");
    expect(server.requests.map(({ url }) => url)).toEqual([
      `/rows?${sent}&the%20name=a%20b%2Bc`,
      `/rows?${sent}&the%20name=a%20b%2Bc&page=2%203`,
    ]);
  });

  it("replaces a parameter of the URL that selects the page", async () => {
    const rig = rigOf({
      request: { url: `${server.origin}/rows?a=%20&page=0&b` },
      pagination: { by: "page", param: "page" },
    });
    server.answers = [json(rows())];
    await rig.poll();
    expect(server.requests[0]?.url).toBe("/rows?a=%20&b&page=1");
  });

  it.each([
    ["iso", "2026-01-30T09:05:07.089Z"],
    ["isoSeconds", "2026-01-30T09:05:07Z"],
    ["epochSeconds", "1769763907"],
    ["epochMillis", "1769763907089"],
    ["date", "2026-01-30"],
    ["pattern:yyyy-MM-dd HH:mm:ss", "2026-01-30 09:05:07"],
    ["pattern: dd.MM.yyyy", "30.01.2026"],
    ["pattern:yyyyMMdd'T'HHmmss.SSS'Z'", "20260130T090507.089Z"],
  ])("can contain the cursor in the format %s", async (format, shown) => {
    const rig = rigOf({
      discriminator: { by: "timestamp", path: "$.at" },
      request: { url: `${server.origin}/`, query: { since: `{{cursor | ${format}}}` } },
      startAt: { value: "2026-01-30T09:05:07.089Z" },
    });
    server.answers = [json(rows())];
    await rig.poll();
    expect(decodeURIComponent(server.requests[0]?.url ?? "")).toBe(`/?since=${shown}`);
  });

  it("can have a JSON or text body with placeholders", async () => {
    const discriminator = { by: "sequence", path: "$.id", compare: "text" } as const;
    const body = { filter: [{ after: "{{cursor}}", n: 1 }, "{{cursor}}"], since: "{{cursor}}" };
    const rig = rigOf({ discriminator, request: { url: `${server.origin}/`, method: "POST", body } });
    server.answers = [json(rows('a"b'))];
    await rig.poll();
    await rig.poll();
    expect(server.requests.map(({ text }) => text)).toEqual([
      '{"filter":[{"n":1},null]}',
      '{"filter":[{"after":"a\\"b","n":1},"a\\"b"],"since":"a\\"b"}',
    ]);
    const text = '{"q": "after {{cursor | json}}"}';
    const other = rigOf({ discriminator, request: { url: `${server.origin}/`, method: "POST", body: text } });
    await other.poll();
    await other.poll();
    expect(JSON.parse(server.requests.at(-1)?.text ?? "")).toEqual({ q: 'after a"b' });
  });

  it("stays on the configured host even if the cursor from the server looks like a URL", async () => {
    const discriminator = { by: "token", path: "$.next" } as const;
    const request = { url: `${server.origin}/{{cursor}}/rows` };
    server.answers = [json('{"rows": [], "next": "//evil.example/?x=#\\ud800"}')];
    const rig = rigOf({ discriminator, request });
    await rig.poll();
    await rig.poll();
    expect(server.requests[1]?.url).toBe("/%2F%2Fevil.example%2F%3Fx%3D%23%EF%BF%BD/rows");
  });

  it("is not sent if a header would contain a value with forbidden characters", async () => {
    const discriminator = { by: "token", path: "$.next" } as const;
    const request = { url: `${server.origin}/`, headers: { "x-token": "{{cursor}}" } };
    server.answers = [json({ rows: [], next: "a\r\nx-evil: 1" })];
    const rig = rigOf({ discriminator, request });
    await rig.poll();
    expect(await rig.poll()).toMatchObject({ kind: "failed", code: "request" });
    expect(server.requests).toHaveLength(1);
  });
});

it("a poll trims the whitespace around a header value in the stored settings", async () => {
  const rig = rigOf();
  const config = rig.config as Config;
  const stored = { ...config, request: { ...config.request, headers: { "x-a": " a " } } };
  server.answers = [json(rows())];
  const run = rig.run(new AbortController().signal, stored);
  expect(await rig.source.poll(run)).toEqual({ kind: "done" });
  expect(server.requests.at(-1)?.headers["x-a"]).toBe("a");
});
