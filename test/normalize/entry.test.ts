import { describe, expect, it } from "vitest";
import { all, byId, dataOf, fieldOf, type Given, normalizeBody, typed } from "./support.ts";

describe("an event's payload", () => {
  const listPayloads = (body: string, payloadPath?: string, options: Omit<Given, "definitions"> = {}) =>
    dataOf(
      normalizeBody(body, {
        ...options,
        definitions: [payloadPath === undefined ? { type: "all" } : { type: "all", payloadPath }],
      }),
    );

  it.each<[string, string, string | undefined, string]>([
    [
      "is the whole body, byte for byte",
      ' { "a" : 1.0,\n "b":12345678901234567890 }\n',
      undefined,
      ' { "a" : 1.0,\n "b":12345678901234567890 }\n',
    ],
    ["has numbers and whitespace exactly as in the body", '{"a": { "n" : 1e3 } }', "$.a", '{ "n" : 1e3 }'],
    ["can be a scalar", '{"a": "x\\u0041"}', "$.a", '"x\\u0041"'],
    ["can be null", '{"a":null}', "$.a", "null"],
    [
      "is an array of all values if the path can select several values",
      '{"a":[{"n":1.0},{"n":2.50}]}',
      "$.a[*].n",
      "[1.0,2.50]",
    ],
    [
      "is an array even if a path that can select several values selects only one",
      '{"a":{"n":1.0}}',
      "$..n",
      "[1.0]",
    ],
    ["can be an array element counted from the end", '{"a":[1,2.0]}', "$.a[-1]", "2.0"],
    ["is the last of several members with the same name", '{"a":1,"a":2.0}', "$.a", "2.0"],
    ["can be an object of all headers", "{}", "$headers", '{"x-a":"b"}'],
    ["can be selected from the query parameters", "{}", "$query.q", '["1","2"]'],
  ])("%s", (_, body, path, expected) => {
    const delivery = { headers: { "x-a": "b" }, query: { q: ["1", "2"] } };
    expect(listPayloads(body, path, { delivery })).toEqual([expected]);
  });

  it("is missing if payloadPath selects no value, and the item then fails as payload_missing", () => {
    for (const payloadPath of ["$.b", "$.b[*]"]) {
      expect(normalizeBody({ a: 1 }, { definitions: [{ type: "x", payloadPath }] }).failures).toEqual([
        {
          item: null,
          reason: "payload_missing",
          path: "payloadPath",
          detail: `payloadPath ${payloadPath} yields no value`,
          definitions: ["x"],
        },
      ]);
    }
  });

  it("is JSON if payloadPath selects it from a form or XML body, and otherwise the received text", () => {
    const form = { delivery: typed("application/x-www-form-urlencoded") };
    expect(listPayloads("a=1&a=2", "$.a", form)).toEqual(['["1","2"]']);
    expect(listPayloads("a=1&a=2", "$", form)).toEqual(['{"a":["1","2"]}']);
    expect(listPayloads("a=1&a=2", undefined, form)).toEqual(["a=1&a=2"]);
    const xml = { delivery: typed("text/xml") };
    expect(listPayloads('<a b="1"><c>2</c></a>', "$.a", xml)).toEqual(['{"c":"2","@b":"1"}']);
    expect(listPayloads("<a>\n</a>", undefined, xml)).toEqual(["<a>\n</a>"]);
  });
});

describe("the topic entry of an event", () => {
  it("has the fields of a CloudEvents event, in order", () => {
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const [event] = normalizeBody('{"id":"x"}', { ...byId, delivery: { headers: { traceparent } } }).events;
    expect(event?.fields).toEqual([
      ...["specversion", "1.0", "id", "x", "source", "/apps/app_1/channels/hook", "type", "all"],
      ...["time", "2026-01-02T03:04:05.006Z", "datacontenttype", "application/json", "data", '{"id":"x"}'],
      ...["traceparent", traceparent],
    ]);
    expect(event?.topic).toBe("events.org_1.apps.app.event_received.app_1.hook.all");
  });

  it.each([
    ["00-00000000000000000000000000000000-b7ad6b7169203331-01", "an invalid trace id"],
    ["00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", "an invalid parent id"],
    ["ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "an invalid version"],
    ["00-0AF7651916CD43DD8448EB211C80319C-B7AD6B7169203331-01", "upper case"],
    ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x", "more parts than version 00 has"],
    ["garbage", "another format"],
  ])("omits the invalid traceparent %s (%s)", (traceparent) => {
    const [event] = normalizeBody({}, { ...all, delivery: { headers: { traceparent } } }).events;
    expect(fieldOf(event, "traceparent")).toBeUndefined();
  });

  it("keeps a traceparent of a later Trace Context version", () => {
    const traceparent = "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more";
    const [event] = normalizeBody({}, { ...all, delivery: { headers: { traceparent } } }).events;
    expect(fieldOf(event, "traceparent")).toBe(traceparent);
  });

  it.each<[string, string | Buffer, string, string, string, string]>([
    ["JSON", "{}", "application/vnd.x+json", "application/json", "data", "{}"],
    [
      "a form",
      "a=1",
      "application/x-www-form-urlencoded",
      "application/x-www-form-urlencoded",
      "data",
      "a=1",
    ],
    ["XML", "<a/>", "text/xml", "text/xml", "data", "<a/>"],
    ["text", "hé", "text/plain", "text/plain", "data", "hé"],
    [
      "text in another charset",
      Buffer.from("hé", "latin1"),
      "text/plain;charset=latin1",
      "text/plain; charset=utf-8",
      "data",
      "hé",
    ],
    ["bytes", Buffer.from([255, 0]), "image/png", "image/png", "data_base64", "/wA="],
  ])("has the content type and data of %s", (_, body, contentType, datacontenttype, name, data) => {
    const [event] = normalizeBody(body, { ...all, delivery: typed(contentType) }).events;
    expect(fieldOf(event, "datacontenttype")).toBe(datacontenttype);
    expect(fieldOf(event, name)).toBe(data);
  });

  it("has an estimated size that differs from its real size by less than 32 bytes", () => {
    for (const body of ['{"a":"b"}', '{"a":"漢字😀"}', `{"a":"${"x".repeat(10_000)}"}`]) {
      const [event] = normalizeBody(body, all).events;
      const size = Buffer.byteLength(event?.fields.join("") ?? "");
      expect(Math.abs((event?.bytes ?? 0) - size)).toBeLessThan(32);
    }
  });
});

describe("member names selected by jsonpath-plus", () => {
  const config = { pathSyntax: "jsonpath-plus" } as const;

  it("can be the payload or the items of a delivery", () => {
    const named = normalizeBody('{"a": 1, "b": 2}', {
      definitions: [{ type: "x", payloadPath: "$.*~" }],
      config,
    });
    expect(dataOf(named)).toEqual(['["a","b"]']);
    const definitions = [{ type: "x", idPath: "$" }];
    const items = normalizeBody('{"a": 1, "b": 2}', {
      definitions,
      config: { ...config, itemsPath: "$.*~" },
    });
    expect(items.events.map(({ id }) => id)).toEqual(["a", "b"]);
  });
});
