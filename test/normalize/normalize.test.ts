import { createRequire } from "node:module";
import { describe, expect, it } from "vitest";
import { normalize } from "../../src/normalize/normalize.ts";
import {
  channel,
  dataOf,
  deliveryOf,
  fieldOf,
  type Given,
  normalizeBody,
  rulesOf,
  start,
} from "./support.ts";

const all = { definitions: [{ type: "all" }] };
const byId: Given = { definitions: [{ type: "all", idPath: "$.id" }] };
const typed = (contentType: string) => ({ headers: { "content-type": contentType } });

describe("matching", () => {
  const definitions = [
    { type: "push", typePath: "$headers['X-Event']" },
    { type: "1.0", typePath: "$.version" },
    { type: "true", typePath: "$.flag" },
    { type: "blue", typePath: "$.tags[*]" },
    { type: "red", typePath: "$.tags[*]" },
    { type: "any" },
  ];
  const typesOf = (body: unknown, headers: Record<string, string | string[]> = {}): string[] =>
    normalizeBody(body, { definitions, delivery: { headers } }).events.map(({ type }) => type);

  it.each<[string, unknown, Record<string, string | string[]>, string[]]>([
    ["a definition without typePath matches all", {}, {}, ["any"]],
    ["a header's value is a type", {}, { "x-event": "push" }, ["push", "any"]],
    ["a repeated header is no string", {}, { "x-event": ["push", "push"] }, ["any"]],
    ["a number is compared as it is spelled", '{"version":1.0}', {}, ["1.0", "any"]],
    ["a number is not compared by its value", '{"version":1}', {}, ["any"]],
    ["a boolean is compared as a string", { flag: true }, {}, ["true", "any"]],
    [
      "every value of a path is compared, in the definitions' order",
      { tags: ["red", "x", "blue", "red"] },
      {},
      ["blue", "red", "any"],
    ],
    ["objects, arrays and null match no type", { tags: [null, {}, ["red"]] }, {}, ["any"]],
    ["names of Object.prototype match no type", { tags: ["constructor", "__proto__"] }, {}, ["any"]],
  ])("%s", (_, body, headers, types) => {
    expect(typesOf(body, headers)).toEqual(types);
  });

  it("an item that matches no definition fails as no_match", () => {
    const outcome = normalizeBody({ type: "b" }, { definitions: [{ type: "a", typePath: "$.type" }] });
    expect(outcome).toMatchObject({
      received: 1,
      events: [],
      failures: [{ item: null, reason: "no_match", definitions: [] }],
    });
  });
});

describe("an event's id", () => {
  const idOf = (body: unknown): string | undefined => normalizeBody(body, byId).events[0]?.id;

  it.each<[string, string, string | undefined]>([
    ["is the string under idPath", '{"id":"a b"}', "a b"],
    ["keeps the digits of a large integer", '{"id":12345678901234567890}', "12345678901234567890"],
    ["keeps the spelling 1.0", '{"id":1.0}', "1.0"],
    ["keeps the spelling 1e3", '{"id": 1e3 }', "1e3"],
    ["may be a boolean", '{"id":false}', "false"],
    ["may have 512 characters", `{"id":"${"x".repeat(512)}"}`, "x".repeat(512)],
    ["may not have 513", `{"id":"${"x".repeat(513)}"}`, undefined],
    ["may not be empty", '{"id":""}', undefined],
    ["may not be null", '{"id":null}', undefined],
    ["may not be an object", '{"id":{}}', undefined],
    ["may not be absent", "{}", undefined],
    ["may not be a lone surrogate", '{"id":"\\ud800"}', undefined],
  ])("%s", (_, body, id) => {
    expect(idOf(body)).toBe(id);
    if (id === undefined) {
      expect(normalizeBody(body, byId).failures).toMatchObject([
        { reason: "id_missing", path: "idPath", definitions: ["all"] },
      ]);
    }
  });

  it("must be one value: an idPath that yields two is refused", () => {
    const given = { definitions: [{ type: "all", idPath: "$..id" }] };
    expect(normalizeBody({ id: 1, a: { id: 2 } }, given).failures).toMatchObject([
      { reason: "id_missing", detail: "idPath $..id yields 2 values" },
    ]);
    expect(normalizeBody({ a: { id: 2 } }, given).events[0]?.id).toBe("2");
  });

  it("consists of the delivery's id and the item's place when there is no idPath", () => {
    const outcome = normalizeBody([1, 2], {
      ...all,
      config: { itemsPath: "$" },
      delivery: { deliveryId: "d" },
    });
    expect(outcome.events.map(({ id }) => id)).toEqual(["d/0", "d/1"]);
  });

  it("is new, and not used for dedupe, when the delivery has none either", () => {
    const [event] = normalizeBody({}, all).events;
    expect(event).toMatchObject({ id: "fresh_1", identity: "" });
  });
});

describe("the dedupe key of an event", () => {
  const identityOf = (body: unknown, given: Given): string | undefined =>
    normalizeBody(body, given).events[0]?.identity;

  it("depends on the id, not on the data", () => {
    const [first, second] = [identityOf({ id: "x", n: 1 }, byId), identityOf({ id: "x", n: 2 }, byId)];
    expect(first).toMatch(/^[\w-]{22}$/);
    expect(second).toBe(first);
    expect(identityOf({ id: "y" }, byId)).not.toBe(first);
  });

  it("is accompanied by a digest that differs with the data", () => {
    const digestOf = (body: string): string | undefined => normalizeBody(body, byId).events[0]?.digest;
    expect(digestOf('{"id":1}')).toMatch(/^[\w-]{11}$/);
    expect(digestOf('{"id":1}')).toBe(digestOf('{"id":1}'));
    expect(digestOf('{"id":1}')).not.toBe(digestOf('{"id": 1}'));
  });

  it("is empty when dedupe is off", () => {
    expect(identityOf({ id: "x" }, { ...byId, config: { dedupe: { windowSeconds: 0 } } })).toBe("");
  });

  it("by content is the same for the same content, and so is the id", () => {
    const given: Given = { ...all, config: { dedupe: { by: "content" } } };
    const [a, again, b] = [{ n: 1 }, { n: 1 }, { n: 2 }].map((body) => normalizeBody(body, given).events[0]);
    expect(a?.id).toMatch(/^[\w-]{22}$/);
    expect(again).toMatchObject({ id: a?.id, identity: a?.identity });
    expect(b?.id).not.toBe(a?.id);
    expect(b?.identity).not.toBe(a?.identity);
  });

  it("by content depends on the content also with an idPath", () => {
    const given: Given = { ...byId, config: { dedupe: { by: "content" } } };
    const [a, b] = [
      { id: "x", n: 1 },
      { id: "x", n: 2 },
    ].map((body) => normalizeBody(body, given).events[0]);
    expect(a?.id).toBe("x");
    expect(b?.identity).not.toBe(a?.identity);
  });

  it("with onConflict publish depends on id and content", () => {
    const given: Given = { ...byId, config: { dedupe: { onConflict: "publish" } } };
    const [a, b, again] = [1, 2, 1].map((n) => identityOf({ id: "x", n }, given));
    expect(a).not.toBe(b);
    expect(again).toBe(a);
  });
});

describe("an event's payload", () => {
  const payloads = (body: string, payloadPath?: string, given: Omit<Given, "definitions"> = {}) =>
    dataOf(
      normalizeBody(body, {
        ...given,
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
    ["is a value as it was spelled", '{"a": { "n" : 1e3 } }', "$.a", '{ "n" : 1e3 }'],
    ["may be a scalar", '{"a": "x\\u0041"}', "$.a", '"x\\u0041"'],
    ["may be null", '{"a":null}', "$.a", "null"],
    [
      "is an array of all values of a path that is not singular",
      '{"a":[{"n":1.0},{"n":2.50}]}',
      "$.a[*].n",
      "[1.0,2.50]",
    ],
    ["is an array also of one such value", '{"a":{"n":1.0}}', "$..n", "[1.0]"],
    ["may be counted from the end", '{"a":[1,2.0]}', "$.a[-1]", "2.0"],
    ["is the last of members of one name", '{"a":1,"a":2.0}', "$.a", "2.0"],
    ["may be the headers", "{}", "$headers", '{"x-a":"b"}'],
    ["may be taken from the query", "{}", "$query.q", '["1","2"]'],
  ])("%s", (_, body, path, expected) => {
    const delivery = { headers: { "x-a": "b" }, query: { q: ["1", "2"] } };
    expect(payloads(body, path, { delivery })).toEqual([expected]);
  });

  it("that is missing fails the item as payload_missing", () => {
    for (const payloadPath of ["$.b", "$.b[*]"]) {
      expect(normalizeBody({ a: 1 }, { definitions: [{ type: "x", payloadPath }] }).failures).toEqual([
        {
          item: null,
          reason: "payload_missing",
          path: "payloadPath",
          detail: `payloadPath ${payloadPath} yields nothing`,
          definitions: ["x"],
        },
      ]);
    }
  });

  it("of a form or XML is JSON under a payloadPath, and as received without one", () => {
    const form = { delivery: typed("application/x-www-form-urlencoded") };
    expect(payloads("a=1&a=2", "$.a", form)).toEqual(['["1","2"]']);
    expect(payloads("a=1&a=2", "$", form)).toEqual(['{"a":["1","2"]}']);
    expect(payloads("a=1&a=2", undefined, form)).toEqual(["a=1&a=2"]);
    const xml = { delivery: typed("text/xml") };
    expect(payloads('<a b="1"><c>2</c></a>', "$.a", xml)).toEqual(['{"c":"2","@b":"1"}']);
    expect(payloads("<a>\n</a>", undefined, xml)).toEqual(["<a>\n</a>"]);
  });
});

describe("an entry", () => {
  it("has the fields of a CloudEvents event, in their order", () => {
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
    ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x", "more than version 00 has"],
    ["garbage", "nonsense"],
  ])("leaves out a traceparent %s (%s)", (traceparent) => {
    const [event] = normalizeBody({}, { ...all, delivery: { headers: { traceparent } } }).events;
    expect(fieldOf(event, "traceparent")).toBeUndefined();
  });

  it("keeps the traceparent of a later version", () => {
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
      "text of another charset",
      Buffer.from("hé", "latin1"),
      "text/plain;charset=latin1",
      "text/plain; charset=utf-8",
      "data",
      "hé",
    ],
    ["bytes", Buffer.from([255, 0]), "image/png", "image/png", "data_base64", "/wA="],
  ])("of %s has its content type and data", (_, body, contentType, datacontenttype, name, data) => {
    const [event] = normalizeBody(body, { ...all, delivery: typed(contentType) }).events;
    expect(fieldOf(event, "datacontenttype")).toBe(datacontenttype);
    expect(fieldOf(event, name)).toBe(data);
  });

  it("gives its size to within 32 bytes", () => {
    for (const body of ['{"a":"b"}', '{"a":"漢字😀"}', `{"a":"${"x".repeat(10_000)}"}`]) {
      const [event] = normalizeBody(body, all).events;
      const size = Buffer.byteLength(event?.fields.join("") ?? "");
      expect(Math.abs((event?.bytes ?? 0) - size)).toBeLessThan(32);
    }
  });
});

describe("member names selected by jsonpath-plus", () => {
  const config = { pathSyntax: "jsonpath-plus" } as const;

  it("can be a payload, or items", () => {
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

describe("items", () => {
  const split = (body: string, itemsPath: string, given: Omit<Given, "definitions"> = {}) =>
    normalizeBody(body, { ...given, ...all, config: { itemsPath, ...given.config } });

  it.each<[string, string, string, string[]]>([
    ["are the elements of an array", '{"a":[ {"n":1.0} , 2 ]}', "$.a", ['{"n":1.0}', "2"]],
    ["are the elements of the body", "[1.0, [2]]", "$", ["1.0", "[2]"]],
    ["are the values that a path yields", '{"a":[{"n":[1]},{"n":[2]}]}', "$.a[*].n", ["[1]", "[2]"]],
    ["may be a single value that is not an array", '{"a":{"n":1}}', "$.a", ['{"n":1}']],
    ["may be found from $body", '{"a":[1]}', "$body.a", ["1"]],
    ["may be none", '{"a":[]}', "$.a", []],
  ])("%s", (_, body, itemsPath, expected) => {
    const outcome = split(body, itemsPath);
    expect(dataOf(outcome)).toEqual(expected);
    expect(outcome.received).toBe(expected.length);
    expect(outcome.failures).toEqual([]);
  });

  it("that are not found make the body invalid", () => {
    for (const itemsPath of ["$.b", "$.b[*]"]) {
      expect(split('{"a":[]}', itemsPath)).toMatchObject({
        received: 1,
        failures: [{ item: null, reason: "invalid_body", path: "itemsPath", definitions: [] }],
      });
    }
  });

  it("of an XML body are JSON", () => {
    const outcome = split("<a><b>1</b><b>2</b></a>", "$.a.b", { delivery: typed("text/xml") });
    expect(dataOf(outcome)).toEqual(['"1"', '"2"']);
    expect(fieldOf(outcome.events[0], "datacontenttype")).toBe("application/json");
  });

  it("are the non-blank lines of NDJSON; a broken line fails alone", () => {
    const outcome = normalizeBody('{"n":1.0}\r\n\n  \n{"n":\n{"n":3}', {
      ...all,
      delivery: typed("application/x-ndjson"),
    });
    expect(dataOf(outcome)).toEqual(['{"n":1.0}', '{"n":3}']);
    expect(outcome.events.map(({ item }) => item)).toEqual([0, 2]);
    expect(outcome.failures).toMatchObject([{ item: 1, reason: "invalid_body" }]);
    expect(outcome.received).toBe(3);
  });

  it("are at most 1,000 per delivery", () => {
    const many = (count: number): unknown => Array.from({ length: count }, () => 0);
    const given: Given = { ...all, config: { itemsPath: "$" } };
    expect(normalizeBody(many(1_000), given).events).toHaveLength(1_000);
    expect(start(many(1_001), given)).toEqual({ kind: "tooManyItems", limit: 1_000 });
    expect(start(many(1_001), { ...all, config: { itemsPath: "$[*]" } })).toEqual({
      kind: "tooManyItems",
      limit: 1_000,
    });
    const lines = { ...all, delivery: typed("application/jsonl") };
    expect(normalizeBody("1\n".repeat(1_000), lines).received).toBe(1_000);
    expect(start("1\n".repeat(1_001), lines)).toEqual({ kind: "tooManyItems", limit: 1_000 });
  });

  it("make at most 10,000 events per delivery", () => {
    const definitions = Array.from({ length: 11 }, (_, index) => ({ type: `t${index}` }));
    const items = Array.from({ length: 1_000 }, () => 0);
    expect(start(items, { definitions, config: { itemsPath: "$" } })).toEqual({
      kind: "tooManyItems",
      limit: 10_000,
    });
    const allowed = normalizeBody(items, { definitions: definitions.slice(1), config: { itemsPath: "$" } });
    expect(allowed.events).toHaveLength(10_000);
  });

  it("are the root $ of their paths, and $body is the whole body", () => {
    const given: Given = {
      definitions: [{ type: "all", idPath: "$.id", payloadPath: "$body.account" }],
      config: { itemsPath: "$.events" },
    };
    const outcome = normalizeBody('{"account":{"n":1.0},"events":[{"id":"a"},{"id":"b"}]}', given);
    expect(outcome.events.map(({ id }) => id)).toEqual(["a", "b"]);
    expect(dataOf(outcome)).toEqual(['{"n":1.0}', '{"n":1.0}']);
  });
});

describe("a failure", () => {
  const invalid = (detail = /./) => [
    { item: null, reason: "invalid_body", detail: expect.stringMatching(detail), definitions: [] },
  ];

  it.each<[string, string | Buffer, string | undefined]>([
    ["broken JSON", "{", undefined],
    ["no body", "", undefined],
    ["broken XML", "<a>", "text/xml"],
    ["broken UTF-8", Buffer.from([0xff]), "text/plain"],
  ])("of %s is invalid_body", (_, body, contentType) => {
    const outcome = normalizeBody(
      body,
      contentType === undefined ? all : { ...all, delivery: typed(contentType) },
    );
    expect(outcome).toMatchObject({ received: 1, events: [], failures: invalid() });
  });

  it("has the reason of the first definition that failed, and names all that failed", () => {
    const outcome = normalizeBody(
      { a: 1 },
      {
        definitions: [
          { type: "fine" },
          { type: "no payload", payloadPath: "$.b" },
          { type: "no id", idPath: "$.b" },
        ],
      },
    );
    expect(outcome.events.map(({ type }) => type)).toEqual(["fine"]);
    expect(outcome.failures).toMatchObject([
      { item: null, reason: "payload_missing", path: "payloadPath", definitions: ["no payload", "no id"] },
    ]);
  });

  const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);

  it.each<[string, string, string | undefined]>([
    ["JSON", nested(4), undefined],
    ["JSON behind braces in strings", `["${"{".repeat(200)}",${nested(3)}]`, undefined],
    ["XML", "<a><b><c><d><e>1</e></d></c></b></a>", "text/xml"],
    ["JSON deeper than any stack", nested(200_000), undefined],
  ])("of %s that nests deeper than the limit is too_deep", (_, body, contentType) => {
    const given = { ...all, config: { limits: { maxDepth: 3 } } };
    const outcome = normalizeBody(
      body,
      contentType === undefined ? given : { ...given, delivery: typed(contentType) },
    );
    expect(outcome.failures).toMatchObject([{ item: null, reason: "too_deep", definitions: [] }]);
  });

  it("of XML deeper than its parser goes is too_deep", () => {
    const body = "<a>".repeat(5_000) + "</a>".repeat(5_000);
    expect(normalizeBody(body, { ...all, delivery: typed("text/xml") }).failures).toMatchObject([
      { reason: "too_deep" },
    ]);
  });

  it("by depth is counted in each item, and does not fail the others", () => {
    const given = { ...all, config: { itemsPath: "$.a.b", limits: { maxDepth: 3 } } };
    const outcome = normalizeBody(`{"a":{"b":[${nested(3)},${nested(4)}]}}`, given);
    expect(outcome.events.map(({ item }) => item)).toEqual([0]);
    expect(outcome.failures).toMatchObject([{ item: 1, reason: "too_deep" }]);
  });

  it("of a body of items that nests beyond all limits is too_deep as a whole", () => {
    const given = { ...all, config: { itemsPath: "$..a" } };
    expect(normalizeBody(nested(100_000), given).failures).toMatchObject([
      { item: null, reason: "too_deep" },
    ]);
  });

  it("of an item whose paths visit too many nodes is path_budget", () => {
    const body = { big: Array.from({ length: 1_000 }, () => ({ a: 1 })) };
    for (const setting of ["typePath", "idPath", "payloadPath"] as const) {
      const outcome = normalizeBody(body, {
        definitions: [{ type: "x", [setting]: "$.big[?count($..*) > 1]" }],
      });
      expect(outcome.failures).toMatchObject([{ item: null, reason: "path_budget", path: setting }]);
    }
    const outcome = normalizeBody(body, { ...all, config: { itemsPath: "$.big[?count($..*) > 1]" } });
    expect(outcome.failures).toMatchObject([{ item: null, reason: "path_budget", path: "itemsPath" }]);
  });

  it("is path_budget also when all items together spend the budget of their delivery", () => {
    const items = Array.from({ length: 200 }, () => ({ big: Array.from({ length: 50 }, () => [1, 2]) }));
    const { events, failures } = normalizeBody(items, {
      definitions: [{ type: "x", payloadPath: "$.big[?count($..*) > 1]" }],
      config: { itemsPath: "$" },
    });
    expect(events.map(({ item }) => item)).toEqual(events.map((_, index) => index));
    expect(events.length).toBeGreaterThan(10);
    expect(events.length).toBeLessThan(100);
    expect(failures).toHaveLength(200 - events.length);
    for (const { reason } of failures) expect(reason).toBe("path_budget");
  });
});

describe("the output of a delivery", () => {
  it("is bounded in bytes; the items beyond it fail and can be re-driven one by one", () => {
    const definitions = [{ type: "x", payloadPath: "$body" }];
    const config = { itemsPath: "$.items" };
    const body = { pad: "x".repeat(5_000_000), items: Array(1000).fill(0) };
    const outcome = normalizeBody(body, { definitions, config });
    expect(outcome.events).toHaveLength(14);
    expect(outcome.failures).toHaveLength(986);
    expect(outcome.failures[0]).toMatchObject({ item: 14, reason: "path_budget", definitions: ["x"] });
    const only = { id: "qr_1", item: 999, definitions: ["x"], asNewId: false };
    expect(normalizeBody(body, { definitions, config, only }).events).toHaveLength(1);
  });
});

describe("a schema", () => {
  const schema = { type: "object" };
  const given = (validatorFor: Given["validatorFor"]): Given => ({
    definitions: [{ type: "checked", payloadPath: "$.a", schema }, { type: "unchecked" }],
    ...(validatorFor === undefined ? {} : { validatorFor }),
  });

  it("validates the payload, and its violation names the place", () => {
    const seen: unknown[] = [];
    const outcome = normalizeBody(
      { a: { n: 1 } },
      given((asked) => {
        seen.push(asked);
        return {
          validate: (value) => {
            seen.push(value);
            return { path: "/n", message: "must be string" };
          },
        };
      }),
    );
    expect(seen).toEqual([schema, { n: 1 }]);
    expect(outcome.events.map(({ type }) => type)).toEqual(["unchecked"]);
    expect(outcome.failures).toEqual([
      {
        item: null,
        reason: "schema_mismatch",
        path: "/n",
        detail: "must be string",
        definitions: ["checked"],
      },
    ]);
  });

  it("may be checked asynchronously, and the events keep their order", async () => {
    const outcome = start(
      { a: {} },
      given(async () => ({ validate: async () => undefined })),
    );
    expect(outcome).toBeInstanceOf(Promise);
    expect(await outcome).toMatchObject({
      events: [{ type: "checked" }, { type: "unchecked" }],
      failures: [],
    });
  });

  it("whose validator is unavailable fails the delivery, not the item", async () => {
    await expect(
      start(
        { a: {} },
        given(() => Promise.reject(new Error("gone"))),
      ),
    ).rejects.toThrow("gone");
  });

  it("whose validator throws leaves no unhandled rejection of the others", async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on("unhandledRejection", note);
    using _ = { [Symbol.dispose]: () => void process.off("unhandledRejection", note) };
    const validators = [() => Promise.reject(new Error("later")), () => raise("now")];
    const definitions = [
      { type: "a", schema },
      { type: "b", schema },
    ];
    expect(() =>
      start({}, { definitions, validatorFor: () => validators.shift()?.() ?? raise("none") }),
    ).toThrow("now");
    await new Promise((resolve) => setImmediate(resolve));
    expect(unhandled).toEqual([]);
  });

  it("validates the values of a query path as an array, and a form as JSON", () => {
    const seen: unknown[] = [];
    const validatorFor = () => ({ validate: (value: unknown) => void seen.push(value) });
    normalizeBody(
      { a: [1, 2] },
      { definitions: [{ type: "x", payloadPath: "$.a[*]", schema }], validatorFor },
    );
    const delivery = typed("application/x-www-form-urlencoded");
    normalizeBody("a=1", { definitions: [{ type: "x", schema }], validatorFor, delivery: delivery });
    expect(seen).toEqual([[1, 2], { a: "1" }]);
  });

  it("is not satisfied by bytes", () => {
    const delivery = typed("image/png");
    const outcome = normalizeBody("x", { definitions: [{ type: "x", schema: true }], delivery });
    expect(outcome.failures).toMatchObject([{ reason: "schema_mismatch", path: "" }]);
  });
});

describe("a re-drive", () => {
  const definitions = [{ type: "a" }, { type: "b", idPath: "$.id" }];
  const given = (only: Given["only"]): Given => ({
    definitions,
    config: { itemsPath: "$" },
    delivery: { deliveryId: "d" },
    ...(only === undefined ? {} : { only }),
  });
  const body = [{ id: 1 }, { id: 2 }, {}];

  it("runs one item by the named definitions, with the original ids", () => {
    const outcome = normalizeBody(body, given({ id: "qr_1", item: 1, definitions: ["a"], asNewId: false }));
    expect(outcome).toMatchObject({ received: 1, events: [{ type: "a", id: "d/1", item: 1 }], failures: [] });
  });

  it("runs all definitions when none is named", () => {
    const outcome = normalizeBody(body, given({ id: "qr_1", item: 2, definitions: [], asNewId: false }));
    expect(outcome).toMatchObject({ events: [{ type: "a" }], failures: [{ item: 2, definitions: ["b"] }] });
  });

  it("with a new id uses the same new id each time", () => {
    const asNew = given({ id: "qr_1", item: 1, definitions: ["b"], asNewId: true });
    const [event] = normalizeBody(body, asNew).events;
    expect(event).toMatchObject({ type: "b", id: "qr_1/1", identity: expect.stringMatching(/^.{22}$/) });
    expect(normalizeBody(body, asNew).events).toMatchObject([{ id: "qr_1/1", identity: event?.identity }]);
    const off = { ...asNew, config: { itemsPath: "$", dedupe: { windowSeconds: 0 } } };
    expect(normalizeBody(body, off).events).toMatchObject([{ id: "qr_1/1", identity: "" }]);
  });

  it("of an item without an id uses the same id each time", () => {
    const only = { id: "qr_1", item: null, definitions: [], asNewId: false };
    const [event] = normalizeBody({}, { definitions: [{ type: "a" }], only }).events;
    expect(event).toMatchObject({ id: "qr_1/0", identity: expect.stringMatching(/^.{22}$/) });
  });

  it("of a whole delivery that now has items runs all of them by all definitions", () => {
    const whole = { id: "qr_1", item: null, definitions: ["b"], asNewId: false };
    expect(normalizeBody(body, given(whole))).toMatchObject({
      received: 3,
      events: [
        { type: "a", item: 0 },
        { type: "b", item: 0 },
        { type: "a", item: 1 },
        { type: "b", item: 1 },
        { type: "a", item: 2 },
      ],
      failures: [{ item: 2, definitions: ["b"] }],
    });
    expect(normalizeBody([], given(whole))).toMatchObject({ received: 0, events: [], failures: [] });
  });

  it("of a whole delivery without items runs the named definitions", () => {
    const only = { id: "qr_1", item: null, definitions: ["b"], asNewId: false };
    expect(normalizeBody({ id: 1 }, { definitions, only })).toMatchObject({
      received: 1,
      events: [{ type: "b", id: "1", item: null }],
      failures: [],
    });
  });

  it.each([
    ["whose delivery fails as a whole", { itemsPath: "$.none" }, "invalid_body"],
    ["that matches no definition", { itemsPath: "$" }, "no_match"],
  ] as const)("of an item %s fails with the same item and definitions", (_, config, reason) => {
    const only = { id: "qr_1", item: 1, definitions: ["gone"], asNewId: false };
    const outcome = normalizeBody(body, { definitions, config, only });
    expect(outcome).toMatchObject({ events: [], failures: [{ item: 1, reason, definitions: ["gone"] }] });
  });

  it("of an item that no longer exists fails again", () => {
    const outcome = normalizeBody(body, given({ id: "qr_1", item: 3, definitions: ["a"], asNewId: false }));
    expect(outcome).toMatchObject({
      received: 1,
      events: [],
      failures: [{ item: 3, reason: "invalid_body", definitions: ["a"] }],
    });
  });
});

function raise(message: string): never {
  throw new Error(message);
}

interface Example {
  readonly name: string;
  readonly examples: readonly unknown[];
}

describe("GitHub's webhooks", () => {
  const examples = createRequire(import.meta.url)("@octokit/webhooks-examples") as readonly Example[];
  const rules = rulesOf(
    examples.map(({ name }) => ({
      type: name,
      typePath: "$headers['X-GitHub-Event']",
      idPath: "$headers['X-GitHub-Delivery']",
    })),
  );

  it("each become one event on the topic of their type, byte for byte", () => {
    let count = 0;
    for (const { name, examples: bodies } of examples) {
      for (const body of bodies) {
        const text = JSON.stringify(body, null, 2);
        const headers = {
          "content-type": "application/json",
          "x-github-event": name,
          "x-github-delivery": `${count++}`,
        };
        const outcome = normalize(rules, deliveryOf(text, { headers }), {
          validatorFor: () => ({ validate: () => undefined }),
          newEventId: () => "none",
        });
        if (outcome instanceof Promise || outcome.kind !== "normalized") throw new Error("not at once");
        expect(outcome.failures).toEqual([]);
        expect(outcome.events).toHaveLength(1);
        expect(outcome.events[0]?.topic).toBe(
          `events.org_1.apps.app.event_received.app_1.${channel.uid}.${name}`,
        );
        expect(fieldOf(outcome.events[0], "data")).toBe(text);
      }
    }
    expect(count).toBeGreaterThan(300);
  });
});
