import { Session } from "node:inspector/promises";
import { describe, expect, it } from "vitest";
import { cloudevents } from "../../src/channels/cloudevents/cloudevents.ts";
import { pollingProfile } from "../../src/channels/polling/profile.ts";
import { sse } from "../../src/channels/sse/sse.ts";
import { webhook } from "../../src/channels/webhook/webhook.ts";
import { DEFAULT_READING } from "../../src/event/body-reading.ts";
import type { Definition } from "../../src/event/definition.ts";
import { startSchemaCompiler } from "../../src/lib/json-schema/compiler.ts";
import { findFilterErrors } from "../../src/normalize/filter-names.ts";
import { type NormalizeDeps, normalize } from "../../src/normalize/normalize.ts";
import type { KindProfile } from "../../src/normalize/profile.ts";
import { compileRules } from "../../src/normalize/rule-set.ts";
import { opened } from "../support/opened.ts";
import { sharedSchemas } from "../support/schemas.ts";
import { channel, deliveryOf, normalizeBody, type Outcome, settings, typed } from "./support.ts";

const { signal } = new AbortController();
const deps: NormalizeDeps = {
  newEventId: () => "fresh",
  validatorFor: async (schema, lane) => {
    const compiled = await sharedSchemas().compile(schema, { signal, lane });
    if (!compiled.ok) throw new Error(JSON.stringify(compiled.error));
    return compiled.value;
  },
};

type Profiled = { readonly profile: KindProfile; readonly itemsPath?: string };

async function run(
  definitions: readonly Definition[],
  delivery: ReturnType<typeof deliveryOf>,
  { profile, itemsPath }: Profiled = webhook,
): Promise<Outcome> {
  const config = { ...settings(itemsPath === undefined ? {} : { itemsPath }), order: "ascending" };
  const rules = compileRules({ channel, profile, config, definitions, reading: DEFAULT_READING });
  if (!rules.ok) throw new Error(JSON.stringify(rules.error));
  const normalized = await normalize(rules.value, delivery, deps);
  if (normalized.kind !== "normalized") throw new Error(normalized.kind);
  return normalized;
}

const types = ({ events }: Outcome): readonly string[] => events.map(({ type }) => type);
const opensOnly = {
  properties: { item: { properties: { action: { const: "opened" } }, required: ["action"] } },
  required: ["item"],
};

describe("when", () => {
  it("ignores items that it does not match, before their id, payload and schema are read", async () => {
    const definition = { type: "e", when: opensOnly, idPath: "$.id", payloadPath: "$.data", schema: false };
    const items = [{ action: "closed" }, { action: "opened" }, { action: "opened", id: "1", data: {} }];
    const outcome = await run([definition], deliveryOf(items), { ...webhook, itemsPath: "$" });
    expect(outcome).toMatchObject({ received: 3, events: [], ignored: 1 });
    expect(outcome.failures).toMatchObject([
      { item: 1, reason: "id_missing" },
      { item: 2, reason: "schema_mismatch" },
    ]);
  });

  it("counts an item as ignored only if no definition publishes or quarantines it", async () => {
    const definitions = [
      { type: "opened", when: opensOnly },
      { type: "all", typePath: "$.kind" },
      { type: "never", when: false },
      { type: "strict", when: opensOnly, idPath: "$.id" },
    ];
    const items = [
      { action: "closed" },
      { action: "closed", kind: "all" },
      { action: "opened", id: 1 },
      { action: "opened" },
    ];
    const outcome = await run(definitions, deliveryOf(items), { ...webhook, itemsPath: "$" });
    expect(types(outcome)).toEqual(["all", "opened", "strict", "opened"]);
    expect(outcome).toMatchObject({ ignored: 1, failures: [{ item: 3, definitions: ["strict"] }] });
  });

  it.each<[string, Profiled, object, ReturnType<typeof deliveryOf>, boolean]>([
    [
      "headers in lower case, which are the same as those of $headers",
      webhook,
      { properties: { headers: { required: ["x-kind"], maxProperties: 2 } } },
      deliveryOf({}, { headers: { "content-type": "application/json", "x-kind": "a" } }),
      true,
    ],
    [
      "values of repeated query parameters as a list",
      webhook,
      { properties: { query: { properties: { tag: { contains: { const: "b" } } }, required: ["tag"] } } },
      deliveryOf({}, { query: { tag: ["a", "b"] } }),
      true,
    ],
    [
      "the query in the encoding of the channel",
      webhook,
      { properties: { query: { properties: { name: { const: "ö" } } } }, required: ["query"] },
      deliveryOf({}, { query: { name: "%F6" }, ...typed("application/json; charset=latin1") }),
      false,
    ],
    ["an empty body as a missing item", webhook, { required: ["item"] }, deliveryOf(""), false],
    [
      "a binary body as a missing item",
      webhook,
      { not: { required: ["item"] } },
      deliveryOf(Buffer.from([0xff]), typed("application/octet-stream")),
      true,
    ],
    [
      "the fields of a form as strings",
      webhook,
      { properties: { item: { properties: { n: { const: "1" } } } } },
      deliveryOf("n=1", typed("application/x-www-form-urlencoded")),
      true,
    ],
    ["no body next to the item", webhook, { required: ["body"] }, deliveryOf({}), false],
    [
      "name and id of a server-sent event, and no headers",
      sse,
      {
        properties: { event: { const: "open" }, lastEventId: { const: "7" } },
        required: ["event", "lastEventId"],
        maxProperties: 3,
      },
      deliveryOf({}, { headers: { event: "open", "last-event-id": "7" } }),
      true,
    ],
    [
      "the headers of a polled response",
      { profile: pollingProfile, itemsPath: "$" },
      {
        properties: { headers: { properties: { etag: { const: "a" } }, required: ["etag"] } },
        required: ["headers"],
      },
      deliveryOf([{}], { headers: { etag: "a" } }),
      true,
    ],
    [
      "attributes and data of a CloudEvent",
      cloudevents,
      {
        properties: {
          type: { const: "e" },
          subject: false,
          data: { required: ["n"] },
          item: { required: ["n"] },
        },
        required: ["source", "data", "item"],
      },
      deliveryOf(
        { specversion: "1.0", id: "1", source: "/s", type: "e", data: { n: 1 } },
        typed("application/cloudevents+json"),
      ),
      true,
    ],
  ])("sees %s", async (_, kind, when, delivery, matches) => {
    const outcome = await run([{ type: "e", when: { ...when } }], delivery, kind);
    expect(outcome.failures).toEqual([]);
    expect([types(outcome), outcome.ignored]).toEqual(matches ? [["e"], 0] : [[], 1]);
  });

  it("charges the paths of items that waited for it to the budget of the delivery", async () => {
    const wide = { list: Array.from({ length: 95_000 }, (_, n) => n) };
    const definition = { type: "e", when: true, idPath: "$.list[?@ == -1]" };
    const outcome = await run([definition], deliveryOf(Array.from({ length: 12 }, () => wide)), {
      ...webhook,
      itemsPath: "$",
    });
    expect(outcome.failures.at(0)).toMatchObject({ reason: "id_missing" });
    expect(outcome.failures.at(-1)).toMatchObject({ reason: "path_budget" });
  });
});

it("a delivery executes no code of filters if its definitions have no `when`", async () => {
  const executed = async (definition: Definition): Promise<readonly string[]> => {
    const session = new Session();
    session.connect();
    try {
      await session.post("Profiler.enable");
      await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
      await run([definition], deliveryOf({ id: "1" }));
      const { result } = await session.post("Profiler.takePreciseCoverage");
      return result
        .filter(({ url }) => url.includes("/src/normalize/filter"))
        .flatMap(({ functions }) => functions)
        .filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0)
        .map(({ functionName }) => functionName);
    } finally {
      session.disconnect();
    }
  };
  // Compiling the channel reads the roots of its kind once.
  const ofCompilation = ["getFilterRoots", ""];
  const plain = await executed({ type: "e", idPath: "$.id", schema: { type: "object" } });
  expect(plain.filter((name) => !ofCompilation.includes(name))).toEqual([]);
  expect(await executed({ type: "e", idPath: "$.id", when: { required: ["item"] } })).toContain(
    "createFilterInput",
  );
});

describe("a `when` that cannot be evaluated", () => {
  const compiler = opened(async () => startSchemaCompiler({ maxCheckCpuMs: 50 }));

  it("quarantines the item as filter_failed instead of ignoring or publishing it", async () => {
    const branch = { anyOf: [{ $ref: "#/$defs/a" }, { $ref: "#/$defs/a" }] };
    const when = {
      properties: { item: { $ref: "#/$defs/a" } },
      $defs: { a: { properties: { a: branch }, anyOf: [{ required: ["a"] }, { required: ["b"] }] } },
    };
    const deep = Array.from({ length: 40 }).reduce<object>((inner) => ({ a: inner }), {});
    const validatorFor: NormalizeDeps["validatorFor"] = async (schema, lane) => {
      const compiled = await compiler.compile(schema, { signal, lane });
      if (!compiled.ok) throw new Error(JSON.stringify(compiled.error));
      return compiled.value;
    };
    const rules = compileRules({
      channel,
      profile: webhook.profile,
      config: settings(),
      definitions: [{ type: "e", when, idPath: "$.id" }],
    });
    if (!rules.ok) throw new Error(JSON.stringify(rules.error));
    expect(await normalize(rules.value, deliveryOf(deep), { ...deps, validatorFor })).toMatchObject({
      events: [],
      ignored: 0,
      failures: [
        {
          reason: "filter_failed",
          path: "when",
          detail: expect.stringContaining("CPU time"),
          definitions: ["e"],
        },
      ],
    });
  });
});

describe("the check of a new `when`", () => {
  const messages = (when: object, profile = webhook.profile): readonly string[] =>
    findFilterErrors({ ...when }, profile).map(({ message }) => message);

  it.each<[string, object, KindProfile?]>([
    ["no names", { minProperties: 1 }],
    ["all values of a webhook channel", { required: ["headers", "query", "item"] }],
    ["lower-case headers", { properties: { headers: { required: ["x-kind"] } } }],
    ["upper-case names of the item", { properties: { item: { required: ["X-Kind"] } } }],
    ["the name of a stream's event", { anyOf: [{ properties: { event: { const: "a" } } }] }, sse.profile],
  ])("accepts %s", (_, when, profile) => {
    expect(messages(when, profile)).toEqual([]);
  });

  it.each<[string, object, RegExp, KindProfile?]>([
    [
      "names of the item outside of `item`",
      { properties: { action: { const: "opened" } } },
      /^names "action", but must only name `headers`, `query`, `item`; .* inside of `item`$/,
    ],
    ["the body", { required: ["body"] }, /names "body"/],
    ["nested unknown names", { allOf: [{ if: { not: { required: ["a"] } } }] }, /names "a"/],
    ["dependent names", { dependentSchemas: { item: { dependentRequired: { b: ["item"] } } } }, /names "b"/],
    ["headers of a stream", { required: ["headers"] }, /`event`, `lastEventId`, `item`/, sse.profile],
    [
      "header names in upper case",
      { anyOf: [{ properties: { headers: { properties: { "X-Kind": true } } } }] },
      /names the header "X-Kind", .* use "x-kind"$/,
    ],
  ])("rejects %s, which would match every item or none", (_, when, message, profile) => {
    expect(messages(when, profile)).toEqual([expect.stringMatching(message)]);
  });
});

describe("an item that matches no definition on a channel with `onNoMatch: ignore`", () => {
  const config = { onNoMatch: "ignore", itemsPath: "$.items" } as const;
  const definitions = [{ type: "a", typePath: "$.type" }];

  it("is counted as ignored, and has neither an event nor a failure", () => {
    const body = { items: [{ type: "a" }, { type: "b" }, { type: 1 }] };
    const { events, failures, ignored, received } = normalizeBody(body, { definitions, config });
    expect([received, events.length, failures, ignored]).toEqual([3, 1, [], 2]);
  });

  it("still fails for any other reason", () => {
    const deep = { items: [{ type: "b", deep: [[[[1]]]] }] };
    const given = { definitions, config: { ...config, limits: { maxDepth: 3 } } };
    expect(normalizeBody(deep, given)).toMatchObject({ ignored: 0, failures: [{ reason: "too_deep" }] });
  });
});
