import { describe, expect, it } from "vitest";
import { UnavailableError } from "../../src/lib/errors.ts";
import type { JobOptions } from "../../src/lib/worker-queue.ts";
import { normalize } from "../../src/normalize/normalize.ts";
import { all, deliveryOf, type Given, normalizeBody, rulesOf, start, typed } from "./support.ts";

function raise(message: string): never {
  throw new Error(message);
}

describe("the failure of a delivery or item", () => {
  const invalid = (detail = /./) => [
    { item: null, reason: "invalid_body", detail: expect.stringMatching(detail), definitions: [] },
  ];

  it.each<[string, string | Buffer, string | undefined]>([
    ["broken JSON", "{", undefined],
    ["broken XML", "<a>", "text/xml"],
    ["broken UTF-8", Buffer.from([0xff]), "text/plain"],
  ])("is invalid_body for %s", (_, body, contentType) => {
    const outcome = normalizeBody(
      body,
      contentType === undefined ? all : { ...all, delivery: typed(contentType) },
    );
    expect(outcome).toMatchObject({ received: 1, events: [], failures: invalid() });
  });

  it("has the reason of the first failed event definition, and lists all failed definitions", () => {
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
    ["JSON after strings that contain braces", `["${"{".repeat(200)}",${nested(3)}]`, undefined],
    ["XML", "<a><b><c><d><e>1</e></d></c></b></a>", "text/xml"],
    ["JSON deeper than any stack", nested(200_000), undefined],
  ])("is too_deep for %s that is nested beyond the limit", (_, body, contentType) => {
    const given = { ...all, config: { limits: { maxDepth: 3 } } };
    const outcome = normalizeBody(
      body,
      contentType === undefined ? given : { ...given, delivery: typed(contentType) },
    );
    expect(outcome.failures).toMatchObject([{ item: null, reason: "too_deep", definitions: [] }]);
  });

  it("is too_deep for XML nested beyond the parser's limit", () => {
    const body = "<a>".repeat(5_000) + "</a>".repeat(5_000);
    expect(normalizeBody(body, { ...all, delivery: typed("text/xml") }).failures).toMatchObject([
      { reason: "too_deep" },
    ]);
  });

  it("is too_deep only for the item that is nested too deeply", () => {
    const given = { ...all, config: { itemsPath: "$.a.b", limits: { maxDepth: 3 } } };
    const outcome = normalizeBody(`{"a":{"b":[${nested(3)},${nested(4)}]}}`, given);
    expect(outcome.events.map(({ item }) => item)).toEqual([0]);
    expect(outcome.failures).toMatchObject([{ item: 1, reason: "too_deep" }]);
  });

  it("is too_deep for the whole delivery if the body is nested beyond all limits", () => {
    const given = { ...all, config: { itemsPath: "$..a" } };
    expect(normalizeBody(nested(100_000), given).failures).toMatchObject([
      { item: null, reason: "too_deep" },
    ]);
  });

  it("is path_budget for an item whose paths visit too many nodes", () => {
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

  it("is path_budget for all remaining items after earlier items exhausted the delivery's budget", () => {
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

describe("the payload schema of an event definition", () => {
  const schema = { type: "object" };
  const given = (validatorFor: Given["validatorFor"]): Given => ({
    definitions: [{ type: "checked", payloadPath: "$.a", schema }, { type: "unchecked" }],
    ...(validatorFor === undefined ? {} : { validatorFor }),
  });

  it("rejects an invalid payload, and reports the path of the violation", () => {
    const seen: unknown[] = [];
    const outcome = normalizeBody(
      { a: { n: 1 } },
      given((schemaToCompile) => {
        seen.push(schemaToCompile);
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

  it("can be checked asynchronously, and the order of events stays the same", async () => {
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

  it("fails the whole delivery instead of the item if its validator is unavailable", async () => {
    await expect(
      start(
        { a: {} },
        given(() => Promise.reject(new Error("gone"))),
      ),
    ).rejects.toThrow("gone");
  });

  it("causes no unhandled rejection if its validator throws", async () => {
    const unhandled: unknown[] = [];
    const record = (reason: unknown): void => void unhandled.push(reason);
    process.on("unhandledRejection", record);
    using _ = { [Symbol.dispose]: () => void process.off("unhandledRejection", record) };
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

  it("fails the delivery as unavailable if validation takes too long, and aborts the validation", async () => {
    const { promise: never } = Promise.withResolvers<undefined>();
    const callers: JobOptions[] = [];
    const validate = (_: unknown, caller: JobOptions) => {
      callers.push(caller);
      return never;
    };
    const rules = rulesOf([{ type: "x", schema }]);
    const deps = { validatorFor: () => ({ validate }), newEventId: () => "fresh" };
    await expect(normalize(rules, deliveryOf({}), deps, undefined, 1)).rejects.toThrow(UnavailableError);
    expect(callers).toMatchObject([{ lane: rules.channel.organizationId, signal: { aborted: true } }]);
  });

  it("validates several selected values as an array, and a form body as an object", () => {
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

  it("rejects an event with binary data", () => {
    const delivery = typed("image/png");
    const outcome = normalizeBody("x", { definitions: [{ type: "x", schema: true }], delivery });
    expect(outcome.failures).toMatchObject([{ reason: "schema_mismatch", path: "" }]);
  });
});
