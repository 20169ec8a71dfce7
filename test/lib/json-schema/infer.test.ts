import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { evaluateCode } from "../../../src/lib/json-schema/evaluate.ts";
import { createSchemaCheck } from "../../../src/lib/json-schema/generate/dialects.ts";
import { generateCode } from "../../../src/lib/json-schema/generate/generate.ts";
import { isIdentifier } from "../../../src/lib/json-schema/infer/identifiers.ts";
import { inferSchema } from "../../../src/lib/json-schema/infer/infer.ts";

const check = createSchemaCheck();

function violationsOf(schema: object, values: readonly unknown[]) {
  const generated = generateCode(JSON.stringify(schema), check);
  if (!generated.ok) throw new Error(JSON.stringify(generated.error));
  const validate = evaluateCode(generated.value.code, { patternBudget: Number.POSITIVE_INFINITY });
  return values.flatMap((value) => validate(value) ?? []);
}

const infer = (...samples: unknown[]) => inferSchema(samples, { enumValues: false });

/** Values with texts that occur nowhere else. */
const marked = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, 7.5, 3),
    fc.string().map((text) => `value<${text}>`),
    fc.constantFrom("2026-01-02T03:04:05Z", "2026-01-02", "a@example.com", "https://example.com/a"),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(
      fc.oneof(fc.constantFrom("id", "name", "items", "__proto__", "order_991"), fc.string()),
      tie("value"),
      {
        maxKeys: 6,
      },
    ),
  ),
})).value;

const textsOf = (value: unknown): readonly string[] => {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsOf) : [];
};

describe("an inferred schema", () => {
  it("accepts every sample and contains no text of a sample, whatever the samples are", () => {
    fc.assert(
      fc.property(fc.array(marked, { minLength: 1, maxLength: 8 }), (samples) => {
        // Sent events are JSON, so the values of a schema are those of parsed text.
        const parsed = samples.map((sample) => JSON.parse(JSON.stringify(sample)) as unknown);
        const schema = infer(...parsed);
        expect(violationsOf(schema, parsed)).toEqual([]);
        expect(violationsOf(inferSchema(parsed, { enumValues: true }), parsed)).toEqual([]);
        const text = JSON.stringify(schema);
        for (const value of parsed.flatMap(textsOf)) expect(text).not.toContain(JSON.stringify(value));
      }),
      { numRuns: 150 },
    );
  });

  it("requires the properties that every sample has, and merges types and formats", () => {
    const schema = infer(
      { id: 1, at: "2026-01-02T03:04:05Z", lines: [{ price: 2 }], note: null },
      { id: 2, at: "2026-01-02T03:04:06Z", lines: [{ price: 2.5, off: true }], note: "x", extra: {} },
    );
    expect(schema).toEqual({
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      properties: {
        id: { type: "integer" },
        at: { type: "string", format: "date-time" },
        lines: {
          type: "array",
          items: {
            type: "object",
            properties: { price: { type: "number" }, off: { type: "boolean" } },
            required: ["price"],
          },
        },
        note: { type: ["null", "string"] },
        extra: { type: "object" },
      },
      required: ["id", "at", "lines", "note"],
    });
  });

  it("describes keys that are ids by additionalProperties, next to the named properties", () => {
    const schema = infer({ items: { total: 2, item_8347: { price: 1 }, "4711": { price: 2.5 } } });
    expect(schema).toMatchObject({
      properties: {
        items: {
          properties: { total: { type: "integer" } },
          required: ["total"],
          additionalProperties: { type: "object", properties: { price: { type: "number" } } },
        },
      },
    });
    expect(JSON.stringify(schema)).not.toMatch(/8347|4711/);
  });

  it("treats many keys that rarely occur together as a map, whatever they look like", () => {
    const names = Array.from({ length: 30 }, (_, at) => `${"abcdefghij"[at % 10]}${"xyz"[at % 3]}name`);
    const samples = names.map((name) => ({ [name]: { seen: true } }));
    const schema = infer(...samples);
    expect(schema.properties).toBeUndefined();
    expect(schema.additionalProperties).toMatchObject({ properties: { seen: { type: "boolean" } } });
    const wide = infer(Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`user${at}`, 1])));
    expect(wide).toMatchObject({ additionalProperties: { type: "integer" } });
  });

  it("has an enum only if values are asked for and repeat", () => {
    const samples = Array.from({ length: 9 }, (_, at) => ({
      state: ["open", "paid"][at % 2],
      id: `n-${at}`,
    }));
    expect(JSON.stringify(infer(...samples))).not.toMatch(/open|paid/);
    expect(inferSchema(samples, { enumValues: true })).toMatchObject({
      properties: { state: { enum: ["open", "paid"] }, id: { type: "string" } },
    });
    expect(JSON.stringify(inferSchema(samples, { enumValues: true }))).not.toContain("n-1");
  });

  it("accepts anything below its depth limit", () => {
    let deep: unknown = 1;
    for (let at = 0; at < 200; at++) deep = { in: deep };
    const schema = infer(deep);
    expect(violationsOf(schema, [deep])).toEqual([]);
    expect(JSON.stringify(schema).length).toBeLessThan(4_000);
  });
});

describe("a key", () => {
  it.each([
    "123",
    "+4930123456",
    "a.b@example.com",
    "U012AB3CD",
    "cus_Nff1d0Hs",
    "price_1MoBy5LkdIwHu7",
    "2026-01-02",
  ])("such as %s is an id", (key) => expect(isIdentifier(key)).toBe(true));
  it.each([
    "id",
    "line_2",
    "address1",
    "sha256",
    "createdAt",
    "utf8_text",
    "$ref",
    "x-y",
    "created_at_utc",
  ])("such as %s is a property name", (key) => expect(isIdentifier(key)).toBe(false));
});
