import { describe, expect, it } from "vitest";
import { fieldOf, normalizeBody, typed } from "./support.ts";

/** The headers of a push notification of Google Calendar. */
const PUSH = { "x-goog-channel-id": "c", "x-goog-message-number": "7", "x-goog-resource-state": "exists" };
const GOOGLE = {
  type: "exists",
  typePath: "$headers['x-goog-resource-state']",
  idPath: "$headers['x-goog-message-number']",
};

describe("a delivery without a body", () => {
  it.each([
    undefined,
    "application/json",
    "application/xml",
    "application/x-www-form-urlencoded",
    "text/plain",
    "application/x-ndjson",
    "application/octet-stream",
  ])("matches definitions by its headers, and its event has no data: %s", (type) => {
    const headers = type === undefined ? PUSH : { ...PUSH, "content-type": type };
    const { events, failures } = normalizeBody("", { definitions: [GOOGLE], delivery: { headers } });
    expect(failures).toEqual([]);
    expect(events).toMatchObject([{ id: "7", type: "exists" }]);
    expect(["data", "data_base64", "datacontenttype"].map((name) => fieldOf(events[0], name))).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  it("matches definitions by its query, and publishes what payloadPath selects there", () => {
    const definitions = [{ type: "t", typePath: "$query.kind", idPath: "$query.id", payloadPath: "$query" }];
    const { events } = normalizeBody("", { definitions, delivery: { query: { kind: "t", id: "1" } } });
    expect(events).toMatchObject([{ id: "1" }]);
    expect(fieldOf(events[0], "data")).toBe('{"kind":"t","id":"1"}');
  });

  it.each(["$", "$.id", "$..id", "$body"])("has no value at the path %s", (path) => {
    expect(normalizeBody("", { definitions: [{ type: "t", idPath: path }] }).failures).toMatchObject([
      { reason: "id_missing", detail: `idPath ${path} yields no value` },
    ]);
    expect(normalizeBody("", { definitions: [{ type: "t", payloadPath: path }] }).failures).toMatchObject([
      { reason: "payload_missing" },
    ]);
  });

  it("fails as schema_mismatch if a definition has a schema", () => {
    const { failures } = normalizeBody("", { definitions: [{ type: "t", schema: { type: "object" } }] });
    expect(failures).toMatchObject([{ reason: "schema_mismatch", detail: "the event has no data" }]);
  });

  it.each([" ", "\r\n"])("may consist of white space if it is JSON: %j", (body) => {
    expect(normalizeBody(body, { definitions: [{ type: "t" }] }).events).toHaveLength(1);
  });

  it("is not a repeat of another one if dedupe compares contents", () => {
    const given = { definitions: [GOOGLE], config: { dedupe: { by: "content" } } } as const;
    const identities = ["7", "8"].map((number) => {
      const headers = { ...PUSH, "x-goog-message-number": number };
      return normalizeBody("", { ...given, delivery: { headers } }).events[0]?.identity;
    });
    expect(new Set(identities).size).toBe(2);
  });
});

describe("an event's content type", () => {
  it.each([
    ["garbage", "application/octet-stream"],
    ["text/", "text/plain"],
    ["a+xml", "application/xml"],
    ["text/plain; x=\u0085", "text/plain"],
    ["text/csv; header=présent", "text/csv; header=présent"],
  ])("is a media type if the sender declares %s", (type, expected) => {
    const { events } = normalizeBody("<a/>", { definitions: [{ type: "t" }], delivery: typed(type) });
    expect(fieldOf(events[0], "datacontenttype")).toBe(expected);
  });
});

describe("a failure of a body that looks like JSON", () => {
  const given = (type: string) => ({
    definitions: [{ type: "a", typePath: "$.type" }],
    delivery: typed(type),
  });

  it.each([
    ["application/x-www-form-urlencoded", "a form"],
    ["text/plain", "text"],
    ["application/octet-stream", "binary data"],
  ])("says how it was read if it was declared as %s", (type, shown) => {
    for (const body of ['{"type":"a"}', ' [{"type":"a"}]\n', '{"rate":"100%","x":"%E9"}']) {
      const [failure] = normalizeBody(body, given(type)).failures;
      expect(failure?.hint).toContain(`read as ${shown} because of its Content-Type, but looks like JSON`);
      expect(failure?.hint).toContain("`readAs`");
      expect(failure?.detail.endsWith(failure?.hint ?? "-")).toBe(true);
    }
  });

  it.each([
    ["application/json", '{"type":"b"}'],
    ["application/x-www-form-urlencoded", "type=b"],
    ["text/plain", "[12:00] started"],
    ["text/plain", ""],
  ])("has no hint otherwise: %s %s", (type, body) => {
    const [failure] = normalizeBody(body, given(type)).failures;
    expect(failure?.reason).toBe("no_match");
    expect(failure).not.toHaveProperty("hint");
  });
});
