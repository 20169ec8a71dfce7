import { HTTP } from "cloudevents";
import { Webhook } from "standardwebhooks";
import { describe, expect, it } from "vitest";
import { createHandlerRequest } from "../../src/event/handler-request.ts";

const SECRET = `whsec_${Buffer.from("0123456789abcdef01234567").toString("base64")}`;
const base = ["specversion", "1.0", "id", "1", "source", "/apps/a/channels/c", "type", "push"];
const plain = { "ce-specversion": "1.0", "ce-id": "1", "ce-source": "/apps/a/channels/c", "ce-type": "push" };

const requestOf = (fields: readonly string[]) =>
  createHandlerRequest(
    { topic: "events.t", entryId: "5-0", fields },
    { url: "https://handler.example/", secret: SECRET, subscriptionId: "sub_1", atMs: 1_790_000_000_999 },
  );

/** Entries with the expected request: its headers, except those of the signature, and its body. */
const GOLDEN: readonly [string, readonly string[], Record<string, string>, string | Buffer][] = [
  [
    "JSON with unchanged numbers and whitespace",
    [
      ...base,
      ...["time", "2026-01-02T03:04:05.006Z", "datacontenttype", "application/json; charset=utf-8"],
      ...["data", '{ "n": 12345678901234567890, "f": 1.0e2,\t"t": "é" }'],
    ],
    {
      ...plain,
      "ce-time": "2026-01-02T03:04:05.006Z",
      "content-type": "application/json; charset=utf-8",
    },
    '{ "n": 12345678901234567890, "f": 1.0e2,\t"t": "é" }',
  ],
  [
    "text",
    [...base, "datacontenttype", "text/plain", "data", '"quoted"\r\n'],
    { ...plain, "content-type": "text/plain" },
    '"quoted"\r\n',
  ],
  [
    "binary data",
    [...base, "datacontenttype", "image/png", "data_base64", "AP+AwyhA"],
    { ...plain, "content-type": "image/png" },
    Buffer.from([0x00, 0xff, 0x80, 0xc3, 0x28, 0x40]),
  ],
  ["no data and no content type", base, plain, ""],
  ["data without a content type", [...base, "data", "{}"], plain, "{}"],
  [
    "a sender's time with microseconds and time zone",
    [...base, "time", "2026-01-02t03:04:05.123456+02:00"],
    { ...plain, "ce-time": "2026-01-02t03:04:05.123456+02:00" },
    "",
  ],
  [
    "a leap second",
    [...base, "time", "2016-12-31T23:59:60Z"],
    { ...plain, "ce-time": "2016-12-31T23:59:60Z" },
    "",
  ],
  [
    "all attributes, with characters outside printable ASCII encoded",
    [
      ...base.with(7, 'tür "a" 100%'),
      ...["subject", "日本/ü", "dataschema", "https://schemas.example/a#b"],
      ...["traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "seq", "007"],
    ],
    {
      ...plain,
      "ce-type": "t%C3%BCr%20%22a%22%20100%25",
      "ce-subject": "%E6%97%A5%E6%9C%AC/%C3%BC",
      "ce-dataschema": "https://schemas.example/a#b",
      "ce-traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      "ce-seq": "007",
    },
    "",
  ],
  [
    "extensions named like JavaScript properties or attributes of older versions",
    [...base, "constructor", "a", "validate", "b", "schemaurl", "c", "datacontentencoding", "d", "emit", "e"],
    {
      ...plain,
      "ce-constructor": "a",
      "ce-validate": "b",
      "ce-schemaurl": "c",
      "ce-datacontentencoding": "d",
      "ce-emit": "e",
    },
    "",
  ],
];

describe("the HTTP request that delivers an event to a handler", () => {
  it.each(GOLDEN)("has the expected headers and body: %s", (_, fields, expected, bytes) => {
    const { method, url, headers = {}, body = "" } = requestOf(fields);
    expect([method, url]).toEqual(["POST", "https://handler.example/"]);
    const { "webhook-id": id, "webhook-timestamp": at, "webhook-signature": signature, ...others } = headers;
    expect([id, at]).toEqual(["msg_sub_1_5-0_wMSey8sJmn04", "1790000000"]);
    expect(signature).toMatch(/^v1,[A-Za-z0-9+/]{43}=$/);
    expect(others).toEqual(expected);
    expect(Buffer.from(body as string)).toEqual(Buffer.from(bytes));
  });

  it("is readable by the `cloudevents` library, and has the same signature as one made by the Standard Webhooks library", () => {
    const fields = [...base, "datacontenttype", "application/json", "data", '{"n":1}', "seq", "007"];
    const { headers = {}, body = "" } = requestOf(fields);
    const event = HTTP.toEvent<{ n: number }>({ headers, body });
    expect(event).toMatchObject({ id: "1", type: "push", data: { n: 1 }, seq: "007" });
    const signedAt = new Date(Number(headers["webhook-timestamp"]) * 1_000);
    const signature = new Webhook(SECRET).sign(headers["webhook-id"] ?? "", signedAt, String(body));
    expect(headers["webhook-signature"]).toBe(signature);
  });
});
