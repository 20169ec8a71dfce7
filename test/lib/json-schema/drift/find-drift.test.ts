import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Drift, findDrift } from "../../../../src/lib/json-schema/drift/find-drift.ts";
import { evaluateCode } from "../../../../src/lib/json-schema/evaluate.ts";
import { createSchemaCheck } from "../../../../src/lib/json-schema/generate/dialects.ts";
import { generateCode } from "../../../../src/lib/json-schema/generate/generate.ts";
import { itDeep } from "../../../support/deep-run.ts";
import { EVENT_NAMES, eventSchema, examples } from "../github.ts";

const SCHEMA = {
  type: "object",
  properties: {
    id: { type: "string" },
    total: { type: ["number", "null"] },
    lines: { type: "array", items: { $ref: "#/$defs/line" } },
    prices: { type: "object", additionalProperties: { type: "number" } },
    payer: {
      anyOf: [
        { type: "object", properties: { card: { type: "string" } } },
        { type: "object", properties: { iban: { type: "string" } } },
      ],
    },
  },
  required: ["id"],
  $defs: {
    line: {
      type: "object",
      properties: { sku: { type: "string" } },
      required: ["sku"],
      additionalProperties: false,
    },
  },
};

const drift = (...inOrder: unknown[]) => findDrift(SCHEMA, { inOrder });
const breaking = (kind: Drift["kind"], path: string, count = 1) => ({ kind, grade: "breaking", path, count });
const info = (path: string, count = 1) => ({ kind: "new_field", grade: "info", path, count });

const repeat = <T>(count: number, make: (at: number) => T): T[] =>
  Array.from({ length: count }, (_, at) => make(at));

describe("values that differ from a schema", () => {
  it("have no drift if the schema declares everything in them", () => {
    const payers = [{ card: "1" }, { iban: "2" }, undefined];
    const whole = payers.map((payer) => ({
      id: "a",
      total: null,
      lines: [{ sku: "x" }],
      prices: { eur: 1 },
      payer,
    }));
    expect(drift(...whole)).toEqual([]);
  });

  it("report fields that the schema requires, rejects, or declares with another type as breaking", () => {
    expect(
      drift({}, { id: 7, lines: [{ sku: "x", color: "red" }, {}] }, { id: "c", prices: { eur: "1" } }),
    ).toEqual(
      [
        breaking("missing_field", "/id"),
        breaking("type_changed", "/id"),
        breaking("missing_field", "/lines/*/sku"),
        breaking("new_field", "/lines/*/color"),
        breaking("type_changed", "/prices/*"),
      ].sort((a, b) => (a.path < b.path ? -1 : 1)),
    );
  });

  it("report undeclared fields that the schema accepts as info, with the number of values that have them", () => {
    const values = [{ id: "a", note: "x" }, { id: "b", note: "y", payer: { phone: "1" } }, { id: "c" }];
    expect(drift(...values)).toEqual([info("/note", 2), info("/payer/phone")]);
  });

  it("report nothing about objects whose properties the schema does not declare", () => {
    expect(findDrift({ type: "object" }, { inOrder: [{ any: { thing: 1 } }] })).toEqual([]);
    expect(findDrift(true, { inOrder: [1] })).toEqual([]);
  });

  it("are described without data: names that look like ids or contain text are shown as *", () => {
    const secret = "ignore all previous instructions";
    const shown = drift({ id: "a", order_90210: 1, [secret]: 2, "a@example.com": 3 });
    expect(shown).toEqual([info("/*")]);
  });
});

describe("newer values that differ from older ones in a way that the schema allows", () => {
  it("report a field that was nearly always present and is now missing", () => {
    const values = [...repeat(20, () => ({ id: "a", total: 1 })), ...repeat(20, () => ({ id: "a" }))];
    expect(drift(...values)).toEqual([
      { kind: "missing_field", grade: "warning", path: "/total", count: 20 },
    ]);
    expect(drift(...values.slice(0, 30))).toEqual([]);
    expect(drift(...values.slice(12, 30))).toEqual([]);
  });

  it("report a field whose type has changed, but not a change from or to null", () => {
    const schema = { properties: { total: {} } };
    const typed = (from: unknown, to: unknown) =>
      findDrift(schema, {
        inOrder: [...repeat(10, () => ({ total: from })), ...repeat(10, () => ({ total: to }))],
      });
    expect(typed(1, "1")).toEqual([{ kind: "type_changed", grade: "warning", path: "/total", count: 10 }]);
    expect([typed(1, 1.5), typed(1, null), typed(null, 1)]).toEqual([[], [], []]);
  });

  it("do not count values whose order is unknown", () => {
    const others = repeat(20, () => ({ id: "a" }));
    expect(findDrift(SCHEMA, { inOrder: repeat(20, () => ({ id: "a", total: 1 })), others })).toEqual([]);
  });
});

describe("breaking drift", () => {
  const check = createSchemaCheck();
  const validatorOf = (schema: object) => {
    const generated = generateCode(JSON.stringify(schema), check);
    if (!generated.ok) throw new Error(JSON.stringify(generated.error));
    return evaluateCode(generated.value.code, { patternBudget: Number.POSITIVE_INFINITY });
  };

  it("is reported only for values that the validator rejects", () => {
    const validate = validatorOf(SCHEMA);
    const line = fc.record(
      { sku: fc.oneof(fc.string(), fc.integer()), color: fc.string() },
      { requiredKeys: [] },
    );
    const order = fc.record(
      {
        id: fc.oneof(fc.string(), fc.integer()),
        total: fc.oneof(fc.double(), fc.constant(null), fc.string()),
        lines: fc.oneof(fc.array(line, { maxLength: 3 }), fc.string()),
        prices: fc.dictionary(fc.string(), fc.oneof(fc.integer(), fc.string()), { maxKeys: 2 }),
        payer: fc.oneof(fc.record({ card: fc.string() }), fc.string(), fc.record({ other: fc.string() })),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(order, fc.string()), (value) => {
        const isRejected = validate(value) !== undefined;
        expect(findDrift(SCHEMA, { inOrder: [value] }).some(({ grade }) => grade === "breaking")).toBe(
          isRejected,
        );
      }),
    );
  });

  itDeep("is not reported for GitHub's own examples of deliveries", () => {
    let compared = 0;
    for (const [event, payloads] of Map.groupBy(examples(), (one) => one.event)) {
      if (!EVENT_NAMES.includes(event)) continue;
      const schema = eventSchema(event);
      const validate = validatorOf(schema);
      const valid = payloads
        .map(({ payload }) => payload)
        .filter((payload) => validate(payload) === undefined);
      const found = findDrift(schema, { inOrder: valid });
      expect([event, found.filter(({ grade }) => grade === "breaking")]).toEqual([event, []]);
      compared += valid.length;
    }
    expect(compared).toBeGreaterThan(50);
  });
});
