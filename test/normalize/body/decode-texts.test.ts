import { describe, expect, it } from "vitest";
import { type BodyDecoding, bodyDecodingSchema } from "../../../src/event/body-reading.ts";
import { normalize } from "../../../src/normalize/normalize.ts";
import { compileWith, deliveryOf, fieldOf, type Outcome, type Settings } from "../support.ts";

const toBase64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64");

interface Given {
  readonly decode: BodyDecoding;
  readonly idPath?: string;
  readonly payloadPath?: string;
  readonly config?: Settings;
  readonly contentType?: string;
}

function receive(body: unknown, { decode, config, contentType, ...paths }: Given): Outcome {
  const rules = compileWith({ forms: "fields", decode }, [{ type: "e", ...paths }], config);
  const headers = contentType === undefined ? {} : { "content-type": contentType };
  let ids = 0;
  const deps = { validatorFor: () => ({ validate: () => undefined }), newEventId: () => `fresh_${++ids}` };
  const outcome = normalize(rules, deliveryOf(body, { headers }), deps);
  if (outcome instanceof Promise || outcome.kind !== "normalized") throw new Error("not normalized");
  return outcome;
}

function dataOf(body: unknown, given: Given): readonly (string | undefined)[] {
  const { events, failures } = receive(body, given);
  expect(failures).toEqual([]);
  return events.map((event) => fieldOf(event, "data"));
}

describe("a text that decode selects", () => {
  it("is replaced by the JSON document that it contains", () => {
    const body = { MessageId: "m1", Message: '{"order":{"id":"o1"}}' };
    const decode = { path: "$.Message", as: "json" } as const;
    expect(receive(body, { decode, idPath: "$.Message.order.id" }).events).toMatchObject([{ id: "o1" }]);
    expect(dataOf(body, { decode })).toEqual(['{"MessageId":"m1","Message":{"order":{"id":"o1"}}}']);
  });

  it("is replaced by the JSON document that it contains in base64", () => {
    const body = { message: { data: toBase64({ id: "a", n: 1 }), messageId: "m1" } };
    const given = {
      decode: { path: "$.message.data", as: "base64-json" },
      payloadPath: "$.message.data",
    } as const;
    expect(receive(body, { ...given, idPath: "$.message.data.id" }).events).toMatchObject([{ id: "a" }]);
    expect(dataOf(body, given)).toEqual(['{"id":"a","n":1}']);
  });

  it("is replaced by the text that it contains in base64", () => {
    const data = Buffer.from('Grüße, "Welt"\n').toString("base64");
    expect(dataOf({ data }, { decode: { path: "$.data", as: "base64" } })).toEqual([
      '{"data":"Grüße, \\"Welt\\"\\n"}',
    ]);
  });

  it.each([
    ["the URL-safe alphabet without padding", "Pz8_", "???"],
    ["the standard alphabet without padding", "Pz8/Pw", "????"],
    ["line breaks", "Pz8/\r\nPz8/\n", "??????"],
  ])("may be base64 in %s", (_, data, text) => {
    expect(dataOf({ data }, { decode: { path: "$.data", as: "base64" } })).toEqual([
      JSON.stringify({ data: text }),
    ]);
  });

  it("may be the whole body", () => {
    const body = JSON.stringify('{"id":"a"}');
    expect(dataOf(` ${body}\n`, { decode: { path: "$", as: "json" } })).toEqual(['{"id":"a"}']);
  });

  it("leaves the rest of the body and the inner document as they were spelled", () => {
    const body =
      '{ "big": 12345678901234567890, "m": "{\\"x\\" : 1.50, \\"caf\\u00e9\\":\\"\\\\u0041\\"}", "é": 1e2 }';
    expect(dataOf(body, { decode: { path: "$.m", as: "json" } })).toEqual([
      '{ "big": 12345678901234567890, "m": {"x" : 1.50, "café":"\\u0041"}, "é": 1e2 }',
    ]);
  });

  it("can be one of several, each of which is decoded", () => {
    const body = { records: [{ data: toBase64({ id: "a" }) }, {}, { data: toBase64({ id: "b" }) }] };
    const decode = { path: "$.records[*].data", as: "base64-json" } as const;
    expect(dataOf(body, { decode, config: { itemsPath: "$.records[*].data" } })).toEqual([
      '{"id":"a"}',
      '{"id":"b"}',
    ]);
    const twice = { path: "$['records','records'][*].data", as: "base64-json" } as const;
    expect(dataOf(body, { decode: twice })).toEqual([
      '{"records":[{"data":{"id":"a"}},{},{"data":{"id":"b"}}]}',
    ]);
  });

  it("can be selected in the jsonpath-plus syntax, by a negative index, and below a repeated member", () => {
    const plus = { pathSyntax: "jsonpath-plus" } as const;
    expect(dataOf({ a: [{ m: "1" }] }, { decode: { path: "$..m", as: "json" }, config: plus })).toEqual([
      '{"a":[{"m":1}]}',
    ]);
    expect(dataOf(["x", "2"], { decode: { path: "$[-1]", as: "json" } })).toEqual(['["x",2]']);
    expect(dataOf('{"m":"1","m":"2"}', { decode: { path: "$.m", as: "json" } })).toEqual(['{"m":"1","m":2}']);
  });

  it("is split into items after it was decoded", () => {
    const body = { Message: JSON.stringify({ Records: [{ id: "a" }, { id: "b" }] }) };
    const given = {
      decode: { path: "$.Message", as: "json" },
      config: { itemsPath: "$.Message.Records" },
    } as const;
    expect(receive(body, { ...given, idPath: "$.id" }).events).toMatchObject([{ id: "a" }, { id: "b" }]);
  });

  it("is read in the JSON of a form field", () => {
    const rules = compileWith({ forms: { field: "payload" }, decode: { path: "$.m", as: "json" } }, [
      { type: "e", idPath: "$.m.id" },
    ]);
    const body = `payload=${encodeURIComponent(JSON.stringify({ m: '{"id":"a"}' }))}`;
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const deps = { validatorFor: () => ({ validate: () => undefined }), newEventId: () => "fresh" };
    expect(normalize(rules, deliveryOf(body, { headers }), deps)).toMatchObject({ events: [{ id: "a" }] });
  });
});

describe("a body stays as it is if the value", () => {
  it.each([
    ["is missing", { a: 1 }],
    ["is null", { m: null }],
    ["is empty", { m: "" }],
  ])("%s", (_, body) => {
    expect(dataOf(body, { decode: { path: "$.m", as: "json" } })).toEqual([JSON.stringify(body)]);
  });

  it("cannot exist, because the body is empty", () => {
    expect(dataOf("", { decode: { path: "$.m", as: "json" } })).toEqual([undefined]);
  });
});

describe("a delivery is quarantined as invalid_body if the selected value", () => {
  it.each<[string, unknown, BodyDecoding["as"], string]>([
    ["is a number", { m: 1 }, "json", "it selects a number instead of a text"],
    ["is a boolean", { m: true }, "base64", "it selects a boolean instead of a text"],
    ["is an object", { m: {} }, "json", "it selects an object instead of a text"],
    ["is an array", { m: [] }, "base64-json", "it selects an array instead of a text"],
    ["is no JSON", { m: "Hello" }, "json", "the text does not contain JSON: "],
    ["is no base64", { m: "a$b=" }, "base64", "the text is not valid base64"],
    ["is cut base64", { m: "YWJjZ" }, "base64", "the text is not valid base64"],
    ["is no UTF-8", { m: "/w==" }, "base64", "the text in base64 does not contain valid UTF-8"],
    ["is base64 of no JSON", { m: "SGVsbG8=" }, "base64-json", "the text does not contain JSON: "],
  ])("%s", (_, body, as, detail) => {
    expect(receive(body, { decode: { path: "$.m", as } }).failures).toMatchObject([
      {
        reason: "invalid_body",
        path: "decode.path",
        detail: expect.stringContaining(`decode.path $.m: ${detail}`),
      },
    ]);
  });

  it.each([
    "application/xml",
    "text/plain",
    "application/x-www-form-urlencoded",
    "application/x-ndjson",
  ])("is in a body of another format: %s", (contentType) => {
    const given = { decode: { path: "$.m", as: "json" }, contentType } as const;
    expect(receive("<m>1</m>", given).failures).toMatchObject([
      { detail: "decode.path $.m: the body is not JSON" },
    ]);
  });
});

it("a path that visits too many values is quarantined as path_budget", () => {
  const body = JSON.stringify({ a: Array(1_100_000).fill(0) });
  expect(receive(body, { decode: { path: "$..m", as: "json" } }).failures).toMatchObject([
    { reason: "path_budget", path: "decode.path" },
  ]);
});

it("an unknown encoding or member of decode is rejected", () => {
  const messages = (value: unknown) =>
    bodyDecodingSchema.safeParse(value).error?.issues.map(({ path }) => path);
  expect(messages({ path: "$.m", as: "gzip" })).toEqual([["as"]]);
  expect(messages({ path: "$.m", as: "json", of: 1 })).toEqual([[]]);
  expect(messages({ as: "json" })).toEqual([["path"]]);
});
