import { createRequire } from "node:module";
import { describe, expect, it } from "vitest";
import { normalize } from "../../src/normalize/normalize.ts";
import {
  all,
  channel,
  dataOf,
  deliveryOf,
  fieldOf,
  type Given,
  normalizeBody,
  rulesOf,
  start,
  typed,
} from "./support.ts";

interface Example {
  readonly name: string;
  readonly examples: readonly unknown[];
}

describe("matching a delivery with event definitions by type", () => {
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
    ["always matches a definition without a typePath", {}, {}, ["any"]],
    ["compares the type with a header's value", {}, { "x-event": "push" }, ["push", "any"]],
    ["ignores a repeated header", {}, { "x-event": ["push", "push"] }, ["any"]],
    ["compares a number as it is written in the body", '{"version":1.0}', {}, ["1.0", "any"]],
    ["does not treat the number 1 as the type 1.0", '{"version":1}', {}, ["any"]],
    ["compares a boolean as a string", { flag: true }, {}, ["true", "any"]],
    [
      "compares every value of a path, in definition order",
      { tags: ["red", "x", "blue", "red"] },
      {},
      ["blue", "red", "any"],
    ],
    ["matches no type with objects, arrays and null", { tags: [null, {}, ["red"]] }, {}, ["any"]],
    ["matches no type with names of Object.prototype", { tags: ["constructor", "__proto__"] }, {}, ["any"]],
  ])("%s", (_, body, headers, types) => {
    expect(typesOf(body, headers)).toEqual(types);
  });

  it("fails with the reason no_match if no definition matches", () => {
    const outcome = normalizeBody({ type: "b" }, { definitions: [{ type: "a", typePath: "$.type" }] });
    expect(outcome).toMatchObject({
      received: 1,
      events: [],
      failures: [{ item: null, reason: "no_match", definitions: [] }],
    });
  });
});

describe("the items of a delivery", () => {
  const splitItems = (body: string, itemsPath: string, given: Omit<Given, "definitions"> = {}) =>
    normalizeBody(body, { ...given, ...all, config: { itemsPath, ...given.config } });

  it.each<[string, string, string, string[]]>([
    ["are the elements of an array", '{"a":[ {"n":1.0} , 2 ]}', "$.a", ['{"n":1.0}', "2"]],
    ["are the elements of the body", "[1.0, [2]]", "$", ["1.0", "[2]"]],
    ["are the values that itemsPath selects", '{"a":[{"n":[1]},{"n":[2]}]}', "$.a[*].n", ["[1]", "[2]"]],
    ["can be a single value that is not an array", '{"a":{"n":1}}', "$.a", ['{"n":1}']],
    ["can be selected from $body", '{"a":[1]}', "$body.a", ["1"]],
    ["can be an empty list", '{"a":[]}', "$.a", []],
  ])("%s", (_, body, itemsPath, expected) => {
    const outcome = splitItems(body, itemsPath);
    expect(dataOf(outcome)).toEqual(expected);
    expect(outcome.received).toBe(expected.length);
    expect(outcome.failures).toEqual([]);
  });

  it("are invalid, so that the whole delivery fails as invalid_body, if itemsPath selects no value", () => {
    for (const itemsPath of ["$.b", "$.b[*]"]) {
      expect(splitItems('{"a":[]}', itemsPath)).toMatchObject({
        received: 1,
        failures: [{ item: null, reason: "invalid_body", path: "itemsPath", definitions: [] }],
      });
    }
  });

  it("are stored as JSON if the body is XML", () => {
    const outcome = splitItems("<a><b>1</b><b>2</b></a>", "$.a.b", { delivery: typed("text/xml") });
    expect(dataOf(outcome)).toEqual(['"1"', '"2"']);
    expect(fieldOf(outcome.events[0], "datacontenttype")).toBe("application/json");
  });

  it("are the non-blank lines of an NDJSON body, and an invalid line fails alone", () => {
    const outcome = normalizeBody('{"n":1.0}\r\n\n  \n{"n":\n{"n":3}', {
      ...all,
      delivery: typed("application/x-ndjson"),
    });
    expect(dataOf(outcome)).toEqual(['{"n":1.0}', '{"n":3}']);
    expect(outcome.events.map(({ item }) => item)).toEqual([0, 2]);
    expect(outcome.failures).toMatchObject([{ item: 1, reason: "invalid_body" }]);
    expect(outcome.received).toBe(3);
  });

  it("are the values of a JSON text sequence, which may contain line breaks", () => {
    const outcome = normalizeBody('\x1E{"n":\n1}\n\x1E{"n":2}\n\x1E{"n"', {
      ...all,
      delivery: typed("application/json-seq"),
    });
    expect(dataOf(outcome)).toEqual(['{"n":\n1}', '{"n":2}']);
    expect(outcome.failures).toMatchObject([{ item: 2, reason: "invalid_body" }]);
  });

  it("are limited to 1,000 per delivery", () => {
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

  it("yield at most 10,000 events per delivery", () => {
    const definitions = Array.from({ length: 11 }, (_, index) => ({ type: `t${index}` }));
    const items = Array.from({ length: 1_000 }, () => 0);
    expect(start(items, { definitions, config: { itemsPath: "$" } })).toEqual({
      kind: "tooManyItems",
      limit: 10_000,
    });
    const allowed = normalizeBody(items, { definitions: definitions.slice(1), config: { itemsPath: "$" } });
    expect(allowed.events).toHaveLength(10_000);
  });

  it("are available to paths as $, and the whole body as $body", () => {
    const given: Given = {
      definitions: [{ type: "all", idPath: "$.id", payloadPath: "$body.account" }],
      config: { itemsPath: "$.events" },
    };
    const outcome = normalizeBody('{"account":{"n":1.0},"events":[{"id":"a"},{"id":"b"}]}', given);
    expect(outcome.events.map(({ id }) => id)).toEqual(["a", "b"]);
    expect(dataOf(outcome)).toEqual(['{"n":1.0}', '{"n":1.0}']);
  });
});

describe("the total size of the events of a delivery", () => {
  it("is limited, and items beyond the limit fail but can be redriven individually", () => {
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

describe("a redrive of a quarantined item", () => {
  const definitions = [{ type: "a" }, { type: "b", idPath: "$.id" }];
  const given = (only: Given["only"]): Given => ({
    definitions,
    config: { itemsPath: "$" },
    delivery: { deliveryId: "d" },
    ...(only === undefined ? {} : { only }),
  });
  const body = [{ id: 1 }, { id: 2 }, {}];

  it("uses the definitions that failed before and the original event ids", () => {
    const outcome = normalizeBody(body, given({ id: "qr_1", item: 1, definitions: ["a"], asNewId: false }));
    expect(outcome).toMatchObject({ received: 1, events: [{ type: "a", id: "d/1", item: 1 }], failures: [] });
  });

  it("uses all definitions if no failed definition was recorded", () => {
    const outcome = normalizeBody(body, given({ id: "qr_1", item: 2, definitions: [], asNewId: false }));
    expect(outcome).toMatchObject({ events: [{ type: "a" }], failures: [{ item: 2, definitions: ["b"] }] });
  });

  it("with asNewId publishes the item under a new id that is the same at each attempt", () => {
    const redrive = given({ id: "qr_1", item: 1, definitions: ["b"], asNewId: true });
    const [event] = normalizeBody(body, redrive).events;
    expect(event).toMatchObject({ type: "b", id: "qr_1/1", identity: expect.stringMatching(/^.{22}$/) });
    expect(normalizeBody(body, redrive).events).toMatchObject([{ id: "qr_1/1", identity: event?.identity }]);
    const withoutDedupe = { ...redrive, config: { itemsPath: "$", dedupe: { windowSeconds: 0 } } };
    expect(normalizeBody(body, withoutDedupe).events).toMatchObject([{ id: "qr_1/1", identity: "" }]);
  });

  it("publishes an item without an own id under the same id at each attempt", () => {
    const only = { id: "qr_1", item: null, definitions: [], asNewId: false };
    const [event] = normalizeBody({}, { definitions: [{ type: "a" }], only }).events;
    expect(event).toMatchObject({ id: "qr_1/0", identity: expect.stringMatching(/^.{22}$/) });
  });

  it("processes all items with all definitions if the delivery had failed before it was split into items", () => {
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

  it("uses the definitions that failed before if the delivery is not split into items", () => {
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
  ] as const)("fails again and records the same item and definitions for an item %s", (_, config, reason) => {
    const only = { id: "qr_1", item: 1, definitions: ["gone"], asNewId: false };
    const outcome = normalizeBody(body, { definitions, config, only });
    expect(outcome).toMatchObject({ events: [], failures: [{ item: 1, reason, definitions: ["gone"] }] });
  });

  it("fails as invalid_body if the delivery does not contain the item", () => {
    const outcome = normalizeBody(body, given({ id: "qr_1", item: 3, definitions: ["a"], asNewId: false }));
    expect(outcome).toMatchObject({
      received: 1,
      events: [],
      failures: [{ item: 3, reason: "invalid_body", definitions: ["a"] }],
    });
  });
});

describe("example payloads of all GitHub webhooks", () => {
  const examples = createRequire(import.meta.url)("@octokit/webhooks-examples") as readonly Example[];
  const rules = rulesOf(
    examples.map(({ name }) => ({
      type: name,
      typePath: "$headers['X-GitHub-Event']",
      idPath: "$headers['X-GitHub-Delivery']",
    })),
  );

  it("each become one event with the exact payload bytes, on the topic of the event type", () => {
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
        if (outcome instanceof Promise || outcome.kind !== "normalized")
          throw new Error("not normalized synchronously");
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
