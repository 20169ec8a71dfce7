import { CloudEvent, type CloudEventV1, HTTP } from "cloudevents";
import { describe, expect, it } from "vitest";
import { cloudevents } from "../../src/channels/cloudevents/cloudevents.ts";
import type { OutgoingEvent } from "../../src/event/event.ts";
import type { ItemFailure } from "../../src/event/outcome.ts";
import { normalize } from "../../src/normalize/normalize.ts";
import { compileRules } from "../../src/normalize/rule-set.ts";
import { settings as common, deliveryOf, fieldOf } from "./support.ts";

interface ReceiveOptions {
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly types?: readonly string[];
  readonly schema?: Readonly<Record<string, unknown>>;
}

interface Result {
  readonly received: number;
  readonly events: readonly OutgoingEvent[];
  readonly failures: readonly ItemFailure[];
}

const TYPE = "com.example.someevent";
const REQUIRED = { specversion: "1.0", id: "A1", source: "/mycontext", type: TYPE };
const STRUCTURED = { "content-type": "application/cloudevents+json; charset=UTF-8" };
const BATCHED = { "content-type": "application/cloudevents-batch+json" };
const BINARY = {
  "content-type": "application/json",
  "ce-specversion": "1.0",
  "ce-id": "A1",
  "ce-source": "/mycontext",
  "ce-type": TYPE,
};

function receive(
  body: unknown,
  { headers = STRUCTURED, types = [TYPE], schema }: ReceiveOptions = {},
): Result {
  const rules = compileRules({
    channel: { number: 1, uid: "ce", kind: "cloudevents", appId: "app_1", organizationId: "org_1" },
    profile: cloudevents.profile,
    config: common(),
    definitions: types.map((type) => (schema === undefined ? { type } : { type, schema })),
  });
  if (!rules.ok) throw new Error(JSON.stringify(rules.error));
  const result = normalize(rules.value, deliveryOf(body, { headers }), {
    validatorFor: () => ({ validate: () => undefined }),
    newEventId: () => "fresh",
  });
  if (result instanceof Promise || result.kind !== "normalized")
    throw new Error("not normalized synchronously");
  return result;
}

function entryOf(result: Result): Record<string, string> {
  const [event, ...others] = result.events;
  expect([result.failures, others]).toEqual([[], []]);
  const fields = event?.fields ?? [];
  const names = fields.filter((_, at) => at % 2 === 0);
  return Object.fromEntries(names.map((name, at) => [name, fields[2 * at + 1] ?? ""]));
}

function formatFailure(result: Result): string {
  const [failure, ...others] = result.failures;
  expect([result.events, others]).toEqual([[], []]);
  return `${failure?.reason} ${failure?.path}: ${failure?.detail}`;
}

describe("events created by the library `cloudevents`", () => {
  const sent = new CloudEvent({
    ...REQUIRED,
    time: "2018-04-05T17:31:00.000Z",
    subject: "größe 😀",
    dataschema: "https://example.com/schema.json",
    datacontenttype: "application/json",
    traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    comexampleextension1: "value",
    comexampleothervalue: 5,
    comexamplebool: true,
    data: { a: 1, text: "ü" },
  });
  const expected = {
    ...REQUIRED,
    time: "2018-04-05T17:31:00.000Z",
    datacontenttype: "application/json",
    data: '{"a":1,"text":"ü"}',
    subject: "größe 😀",
    dataschema: "https://example.com/schema.json",
    traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    comexampleextension1: "value",
    comexampleothervalue: "5",
    comexamplebool: "true",
  };
  /** Converts header names to lower case as Node does, and percent-encodes values, which the library does not encode. */
  const toNodeHeaders = (headers: Record<string, unknown>) =>
    Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [
        name.toLowerCase(),
        name.toLowerCase().startsWith("ce-") ? encodeURI(String(value)) : String(value),
      ]),
    );

  it("are stored as the same topic entry in binary and structured mode", () => {
    for (const message of [HTTP.binary(sent), HTTP.structured(sent)]) {
      const headers = toNodeHeaders(message.headers as Record<string, unknown>);
      expect(entryOf(receive(message.body as string, { headers }))).toEqual(expected);
    }
  });

  it("are stored with their fields in a fixed order", () => {
    const message = HTTP.structured(sent);
    expect(Object.keys(entryOf(receive(message.body as string)))).toEqual(Object.keys(expected));
  });

  it("are valid events for the same library after they are read from the topic", () => {
    const { data, ...attributes } = entryOf(receive(HTTP.structured(sent).body as string));
    const read = new CloudEvent({ ...attributes, data: JSON.parse(data ?? "") } as CloudEventV1<unknown>);
    expect(read.validate()).toBe(true);
    expect([read.id, read.subject, read.data]).toEqual([sent.id, sent.subject, sent.data]);
  });

  it("are stored with their position in the batch", () => {
    const batch = [sent, sent.cloneWith({ id: "A2" }), sent.cloneWith({ id: "A3", source: "/other" })];
    const body = JSON.stringify(batch.map((event) => event.toJSON()));
    const { received, events } = receive(body, { headers: BATCHED });
    expect([received, events.map(({ id, item }) => [id, item])]).toEqual([
      3,
      [
        ["A1", 0],
        ["A2", 1],
        ["A3", 2],
      ],
    ]);
  });
});

describe("the data of a CloudEvent", () => {
  const dataOf = (members: object): unknown => {
    const { datacontenttype, data, data_base64 } = entryOf(receive({ ...REQUIRED, ...members }));
    return [datacontenttype, data, data_base64];
  };

  it("is stored with numbers and whitespace exactly as sent", () => {
    const body = `{"specversion":"1.0","id":"1","source":"/s","type":"${TYPE}","data":{ "n": 1.0e2, "big": 12345678901234567890 }}`;
    expect(entryOf(receive(body)).data).toBe('{ "n": 1.0e2, "big": 12345678901234567890 }');
  });

  it("is stored as JSON, even if it is a string, if its content type is JSON or missing", () => {
    expect(dataOf({ data: "text" })).toEqual(["application/json", '"text"', undefined]);
    expect(dataOf({ data: null })).toEqual(["application/json", "null", undefined]);
    expect(dataOf({ datacontenttype: "application/x+json", data: [1] })).toEqual([
      "application/x+json",
      "[1]",
      undefined,
    ]);
  });

  it("is rejected if it is not a string although its content type is not JSON", () => {
    expect(dataOf({ datacontenttype: "application/xml", data: "<a/>" })).toEqual([
      "application/xml",
      "<a/>",
      undefined,
    ]);
    expect(formatFailure(receive({ ...REQUIRED, datacontenttype: "text/plain", data: { a: 1 } }))).toContain(
      "data must be a string",
    );
  });

  it("is stored as base64 from the member data_base64, and is rejected if the event also has the member data", () => {
    expect(dataOf({ datacontenttype: "image/png", data_base64: "iVBO" })).toEqual([
      "image/png",
      undefined,
      "iVBO",
    ]);
    expect(formatFailure(receive({ ...REQUIRED, data: 1, data_base64: "iVBO" }))).toContain(
      "must not be combined with data",
    );
    expect(formatFailure(receive({ ...REQUIRED, data_base64: "iV BO" }))).toContain("must be base64");
  });

  it("is optional", () => {
    expect(entryOf(receive(REQUIRED))).toEqual(REQUIRED);
    expect(entryOf(receive("", { headers: BINARY }))).toEqual({
      ...REQUIRED,
      datacontenttype: "application/json",
    });
    expect(formatFailure(receive(REQUIRED, { schema: { type: "object" } }))).toContain(
      "the event has no data",
    );
  });

  it("is the request body in binary mode, stored as text or base64 depending on the content type", () => {
    const headers = (type: string) => ({ ...BINARY, "content-type": type });
    const text = entryOf(receive("<a/>", { headers: headers("application/xml; charset=utf-8") }));
    expect([text.datacontenttype, text.data]).toEqual(["application/xml; charset=utf-8", "<a/>"]);
    const bytes = entryOf(receive(Buffer.from([0, 255]), { headers: headers("application/octet-stream") }));
    expect([bytes.datacontenttype, bytes.data_base64]).toEqual(["application/octet-stream", "AP8="]);
    expect(formatFailure(receive("{", { headers: BINARY }))).toContain("invalid_body");
  });
});

describe("the attributes of a CloudEvent", () => {
  const withAttribute = (name: string, value: unknown): Result => receive({ ...REQUIRED, [name]: value });

  it.each([
    ["specversion", "0.3", "must be 1.0"],
    ["specversion", 1, "must be a string"],
    ["id", "", "must not be empty"],
    ["id", 7, "must be a string"],
    ["source", "", "must not be empty"],
    ["source", "a b", "must be a URI-reference"],
    ["source", "/%zz", "must be a URI-reference"],
    ["type", "", "must not be empty"],
    ["subject", "", "must not be empty"],
    ["time", "2018-04-05", "must be an RFC 3339 time"],
    ["time", "2018-02-30T00:00:00Z", "must be an RFC 3339 time"],
    ["time", "2018-04-05T24:00:00Z", "must be an RFC 3339 time"],
    ["dataschema", "/relative", "must be an absolute URI"],
    ["datacontenttype", "json", "must be a media type"],
    ["MixedCase", "x", "is not an attribute name"],
    ["with_underscore", "x", "is not an attribute name"],
    ["ext", { a: 1 }, "must be a string, a boolean or a 32-bit integer"],
    ["ext", 2_147_483_648, "must be a string, a boolean or a 32-bit integer"],
    ["ext", 1.5, "must be a string, a boolean or a 32-bit integer"],
    ["ext", "a\u0001b", "must not contain control characters"],
    ["ext", "\ud800", "must not contain control characters"],
  ])("are rejected if %s is %j: %s", (name, value, problem) => {
    expect(formatFailure(withAttribute(name, value))).toMatch(
      new RegExp(`^invalid_cloudevent ${name}: .*${problem}`),
    );
  });

  it.each(Object.keys(REQUIRED))("are rejected without %s", (name) => {
    const { [name]: _, ...others } = REQUIRED as Record<string, string>;
    expect(formatFailure(receive(others))).toBe(`invalid_cloudevent ${name}: ${name} is missing`);
    const { [`ce-${name}`]: __, ...headers } = BINARY as Record<string, string>;
    expect(formatFailure(receive("{}", { headers }))).toContain(
      `invalid_cloudevent ${name}: ${name} is missing`,
    );
  });

  it.each([
    ["time", "1990-12-31T23:59:60Z"],
    ["time", "2020-02-29t01:02:03.123456789+05:30"],
    ["source", "urn:uuid:6e8bc430-9c3a-11d9-9669-0800200c9a66"],
    ["source", "https://user@[::1]:80/a?b=c#d"],
    ["ext", -2_147_483_648],
  ])("are stored unchanged if %s is %j", (name, value) => {
    expect(entryOf(withAttribute(name, value))[name]).toBe(String(value));
  });

  it("are ignored if their value is null", () => {
    expect(entryOf(receive({ ...REQUIRED, subject: null, ext: null }))).toEqual(REQUIRED);
  });

  it("are rejected if there are more than 128, or more than 65,536 characters in total", () => {
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`e${i}`, "x"]));
    expect(formatFailure(receive({ ...REQUIRED, ...many }))).toContain(
      "exceeds the limit of 128 attributes or 65536 characters",
    );
    expect(formatFailure(withAttribute("ext", "x".repeat(70_000)))).toContain(
      "exceeds the limit of 128 attributes or 65536 characters",
    );
  });
});

describe("a ce- header of a CloudEvent in binary mode", () => {
  const decoded = (value: string): Result => receive("{}", { headers: { ...BINARY, "ce-subject": value } });

  it.each([
    ["Euro%20%E2%82%AC%20%F0%9F%98%80", "Euro € 😀"],
    ["%e2%82%ac", "€"],
    ["a%41b", "aAb"],
    ["%2525", "%25"],
    ['"quoted \\"text\\" \\\\"', 'quoted "text" \\'],
    ['"Euro%20%E2%82%AC"', "Euro €"],
    ["plain text", "plain text"],
  ])("is decoded from %s to %s", (value, subject) => {
    expect(entryOf(decoded(value)).subject).toBe(subject);
  });

  it.each([
    ["%C0%A0"],
    ["%zz"],
    ["%"],
    ["gr\u00f6\u00dfe"],
    ["%00"],
  ])("is rejected if its value is %j", (value) => {
    expect(formatFailure(decoded(value))).toMatch(/^invalid_cloudevent subject: /);
  });

  it("is rejected if it is repeated, or if it is ce-datacontenttype instead of Content-Type", () => {
    const twice = receive("{}", { headers: { ...BINARY, "ce-subject": ["a", "b"] } });
    expect(formatFailure(twice)).toContain("subject must not appear twice");
    const own = receive("{}", { headers: { ...BINARY, "ce-datacontenttype": "text/plain" } });
    expect(formatFailure(own)).toContain("must be sent as Content-Type");
  });

  it("is rejected if it differs from the CloudEvents JSON in the body of the same request", () => {
    const same = { ...STRUCTURED, "ce-id": "A1", "ce-specversion": "1.0" };
    expect(entryOf(receive(REQUIRED, { headers: same }))).toEqual(REQUIRED);
    for (const other of [{ "ce-id": "A2" }, { "ce-ext": "x" }]) {
      const result = receive(REQUIRED, { headers: { ...STRUCTURED, ...other } });
      expect(formatFailure(result)).toContain("differs between the event and its header");
    }
  });
});

describe("a batch of CloudEvents", () => {
  it("yields an event for each valid item and a failure for each invalid item", () => {
    const batch = [REQUIRED, { ...REQUIRED, id: "" }, 7, { ...REQUIRED, id: "A2" }];
    const { events, failures, received } = receive(batch, { headers: BATCHED });
    expect(received).toBe(4);
    expect(events.map(({ id, item }) => [id, item])).toEqual([
      ["A1", 0],
      ["A2", 3],
    ]);
    expect(failures.map(({ item, reason, path }) => [item, reason, path])).toEqual([
      [1, "invalid_cloudevent", "id"],
      [2, "invalid_cloudevent", undefined],
    ]);
  });

  it("is rejected if it is not an array, but can be empty", () => {
    expect(receive([], { headers: BATCHED })).toMatchObject({ received: 0, events: [], failures: [] });
    expect(formatFailure(receive({}, { headers: BATCHED }))).toContain("a batch must be a JSON array");
  });
});

describe("the dedupe key of a CloudEvent", () => {
  const identityOf = (members: object): string | undefined =>
    receive({ ...REQUIRED, ...members }).events[0]?.identity;

  it("depends on the source and id of the event, but not on its data", () => {
    const own = identityOf({});
    expect(identityOf({ data: 1 })).toBe(own);
    expect(identityOf({ source: "/other" })).not.toBe(own);
    expect(identityOf({ id: "A2" })).not.toBe(own);
  });
});

it("a CloudEvent without a traceparent attribute gets the traceparent header of its request", () => {
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const { events } = receive(REQUIRED, { headers: { ...STRUCTURED, traceparent } });
  expect(fieldOf(events[0], "traceparent")).toBe(traceparent);
});

it("a CloudEvent matches only the event definition with the same type", () => {
  expect(formatFailure(receive(REQUIRED, { types: ["other"] }))).toContain("no_match");
});

describe("a binary event without a Content-Type", () => {
  const { "content-type": _, ...headers } = BINARY;

  it.each<[string, Buffer | string, Record<string, string>]>([
    ["JSON", '{"a":1}', { datacontenttype: "application/json", data: '{"a":1}' }],
    ["text", "hello", { datacontenttype: "text/plain", data: "hello" }],
    ["text in UTF-8", "größe", { datacontenttype: "text/plain", data: "größe" }],
    [
      "bytes",
      Buffer.from([0xff, 0xfe, 1]),
      { datacontenttype: "application/octet-stream", data_base64: "//4B" },
    ],
    ["no data", "", {}],
  ])("carries %s", (_name, body, data) => {
    for (const more of [{}, { "content-type": "" }])
      expect(entryOf(receive(body, { headers: { ...headers, ...more } }))).toEqual({ ...REQUIRED, ...data });
  });
});

describe("an event that is sent in the wrong mode", () => {
  it.each([
    ["an event in the body", { ...REQUIRED, data: 1 }],
    ["events in the body", [REQUIRED]],
    ["plain data", { a: 1 }],
  ])("fails with the headers and content types to use: %s as application/json", (_, body) => {
    const failure = formatFailure(receive(body, { headers: { "content-type": "application/json" } }));
    expect(failure).toContain(
      "specversion is missing: an event in headers needs ce-specversion, ce-id, ce-source, ce-type.",
    );
    expect(failure).toContain("application/cloudevents+json");
    expect(failure).toContain("application/cloudevents-batch+json");
  });

  it("fails with the missing headers only", () => {
    const { "ce-id": _, "ce-type": __, ...headers } = BINARY;
    expect(formatFailure(receive({ a: 1 }, { headers }))).toContain(
      "id is missing: an event in headers needs ce-id, ce-type.",
    );
  });
});

it("extensions of senders that begin with inlet are dropped, so that only Inlet can mark test events", () => {
  const marked = { inlettest: "true", inletanything: "1", outlet: "2" };
  const headers = { ...BINARY, "ce-inlettest": "true", "ce-inletanything": "1", "ce-outlet": "2" };
  for (const result of [
    receive({ ...REQUIRED, ...marked }),
    receive("{}", { headers }),
    receive([{ ...REQUIRED, ...marked }], { headers: BATCHED }),
  ]) {
    const entry = entryOf(result);
    expect(Object.keys(entry).filter((name) => name.startsWith("inlet"))).toEqual([]);
    expect(entry.outlet).toBe("2");
  }
});

it("the `partitionkey` of the sender is kept, in each mode", () => {
  const keyed = { ...REQUIRED, partitionkey: "customer 7" };
  for (const result of [
    receive(keyed),
    receive("{}", { headers: { ...BINARY, "ce-partitionkey": "customer%207" } }),
    receive([keyed], { headers: BATCHED }),
  ])
    expect(entryOf(result).partitionkey).toBe("customer 7");
});

it("the content type of a CloudEvent may be repeated", () => {
  const structured = { "content-type": ["application/cloudevents+json", "application/cloudevents+json"] };
  expect(entryOf(receive({ ...REQUIRED, data: 1 }, { headers: structured })).data).toBe("1");
  const binary = { ...BINARY, "content-type": "application/json, application/json" };
  expect(entryOf(receive("1", { headers: binary })).datacontenttype).toBe("application/json");
});
