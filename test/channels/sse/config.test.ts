import { describe, expect, it } from "vitest";
import { sseConfigSchema } from "../../../src/channels/sse/config.ts";
import { sseCursorFormat } from "../../../src/channels/sse/cursor.ts";
import { findingsOf } from "../../../src/lib/findings.ts";

const url = "https://example.com/stream";

function describeFindings(config: object): string {
  const input = { url, ...config };
  const parsed = sseConfigSchema.safeParse(input);
  return parsed.success
    ? ""
    : findingsOf(parsed.error, input)
        .map(({ path, message }) => `${path} ${message}`)
        .join("; ");
}

describe("the settings of an SSE channel", () => {
  it("require only `url`", () => {
    expect(sseConfigSchema.parse({ url })).toMatchObject({
      method: "GET",
      dataFormat: "json",
      maxEventBytes: 1_048_576,
      startAt: "now",
      resume: { mode: "lastEventId" },
      reconnect: { initialMs: 1000, maxMs: 60_000, factor: 2, jitter: 0.5, resetAfterMs: 60_000 },
      connectTimeoutMs: 30_000,
      idleTimeoutMs: 300_000,
      redirects: 5,
      connection: "optional",
      run: "subscribed",
    });
  });

  it("do not change when the parsed settings are parsed again", () => {
    const config = sseConfigSchema.parse({
      url,
      stopOn: { event: "bye" },
      resume: { mode: "query", param: "since" },
    });
    expect(sseConfigSchema.parse(config)).toEqual(config);
  });

  it.each([
    [{ url: undefined }, "url"],
    [{ url: "ftp://example.com/" }, "url must begin with https:// or http://"],
    [{ url: "https://" }, "url is not a URL"],
    [{ url: "https://me:secret@example.com/" }, "url must not contain credentials; use a connection instead"],
    [{ url: "https://example.com/#a" }, "url must not have a fragment, because fragments are never sent"],
    [{ method: "DELETE" }, "method"],
    [{ body: "{}" }, "body is not allowed with GET; set `method` to POST"],
    [
      { headers: { Authorization: "Bearer x" } },
      "headers.Authorization carries a secret; use a connection instead",
    ],
    [{ headers: { "X-API-Key": "x" } }, "headers.X-API-Key carries a secret; use a connection instead"],
    [{ headers: { Host: "other" } }, "headers.Host is reserved, because Inlet sets it"],
    [{ headers: { "last-event-id": "1" } }, "headers.last-event-id is reserved, because Inlet sets it"],
    [{ headers: { a: "1", A: "2" } }, "headers.A is a duplicate, because header names are case-insensitive"],
    [{ headers: { "a b": "1" } }, "headers.a b"],
    [{ headers: { a: "1\r\nb: 2" } }, "headers.a is not a valid header value"],
    [{ headers: { a: " 1 " } }, "headers.a is not a valid header value"],
    [{ headers: { a: "1\t" } }, "headers.a is not a valid header value"],
    [{ eventNames: [] }, "eventNames"],
    [{ eventNames: ["a\nb"] }, "eventNames[0] must not contain line breaks or NUL"],
    [{ dataFormat: "xml" }, "dataFormat"],
    [{ dataFormat: "text", itemsPath: "$.a" }, "itemsPath is not allowed when `dataFormat` is text"],
    [
      { dataFormat: "jsonLines", itemsPath: "$.a" },
      "itemsPath is not allowed when `dataFormat` is jsonLines",
    ],
    [{ terminator: "" }, "terminator"],
    [{ maxEventBytes: 0 }, "maxEventBytes"],
    [{ startAt: "earliest" }, "startAt"],
    [{ startAt: { lastEventId: "" } }, "startAt"],
    [{ startAt: { lastEventId: "1" }, resume: { mode: "none" } }, "startAt must be now"],
    [{ resume: { mode: "query" } }, "resume.param is required when `mode` is query"],
    [{ resume: { param: "since" } }, "resume.param is only allowed when `mode` is query"],
    [
      { resume: { mode: "query", param: "a" }, query: { a: "1" } },
      "resume.param is already used in `query` or `url`",
    ],
    [
      { url: `${url}?a=1`, resume: { mode: "query", param: "a" } },
      "resume.param is already used in `query` or `url`",
    ],
    [{ reconnect: { initialMs: 5000, maxMs: 1000 } }, "reconnect.maxMs must not be less than `initialMs`"],
    [{ reconnect: { jitter: 2 } }, "reconnect.jitter"],
    [{ stopOn: {} }, "stopOn must have `event` or `data`"],
    [{ idleTimeoutMs: 1 }, "idleTimeoutMs"],
    [{ redirects: 11 }, "redirects"],
    [{ onInvalid: "reject" }, "onInvalid"],
    [{ unknown: 1 }, "unknown is not a known field"],
  ])("reject %j with an error that names the invalid field", (config, expected) => {
    expect(describeFindings(config)).toContain(expected);
  });
});

describe("the cursor of an SSE channel", () => {
  const settings = sseConfigSchema.parse({ url });

  it("is returned in the same format in which a user sets it", () => {
    const cursor = sseCursorFormat.parse({ lastEventId: "42" }, settings);
    expect(cursor).toEqual({ ok: true, value: '{"lastEventId":"42","n":1}' });
    expect(cursor.ok && sseCursorFormat.show(cursor.value)).toEqual({ lastEventId: "42", n: 1 });
  });

  it.each([
    [null, ""],
    ["42", ""],
    [{}, "lastEventId"],
    [{ lastEventId: 42 }, "lastEventId"],
    [{ lastEventId: "a\nb" }, "lastEventId"],
    [{ lastEventId: "x".repeat(8193) }, "lastEventId"],
    [{ lastEventId: "1", n: -1 }, "n"],
    [{ lastEventId: "1", at: 5 }, "at"],
  ])("cannot be set to %j", (value, path) => {
    const parsed = sseCursorFormat.parse(value, settings);
    expect(!parsed.ok && parsed.error.map((finding) => finding.path)).toEqual([path]);
  });

  it("cannot be set if the settings disable resuming", () => {
    const withoutResume = sseConfigSchema.parse({ url, resume: { mode: "none" } });
    expect(sseCursorFormat.parse({ lastEventId: "1" }, withoutResume)).toMatchObject({ ok: false });
  });

  it("may only contain characters that a header allows, unless it is sent in the query", () => {
    const control = { lastEventId: "a\x01" };
    expect(sseCursorFormat.parse(control, settings)).toMatchObject({ error: [{ path: "lastEventId" }] });
    const byQuery = sseConfigSchema.parse({ url, resume: { mode: "query", param: "since" } });
    expect(sseCursorFormat.parse(control, byQuery)).toMatchObject({ ok: true });
  });
});
