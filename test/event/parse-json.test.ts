import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseExactly } from "../../src/event/exact-json.ts";
import { hasEscapedName, parseJson } from "../../src/event/parse-json.ts";

/** A JSON value as data that V8's parser never sees. An object is a list of its members. */
type Model =
  | string
  | number
  | boolean
  | null
  | Model[]
  | { readonly members: readonly (readonly [string, Model])[] };

const LETTERS = ["a", "u", "0", "\\", '"', "\n", "é", "€", "\ud800", ":", ","];
const names = fc.oneof(
  fc.string({ unit: fc.constantFrom(...LETTERS), maxLength: 4 }),
  fc.constantFrom("__proto__", "constructor", "7", "x"),
);
const { model: models } = fc.letrec<{ model: Model }>((tie) => ({
  model: fc.oneof(
    { maxDepth: 3 },
    fc.string({ unit: fc.constantFrom(...LETTERS) }),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom<Model>(true, false, null, -0, 1e21),
    fc.array(tie("model"), { maxLength: 3 }),
    fc.array(fc.tuple(names, tie("model")), { maxLength: 4 }).map((members) => ({ members })),
  ),
}));
const poisons = [
  String.raw`"\\"`,
  String.raw`"\\u"`,
  String.raw`"\\u0"`,
  String.raw`"\\u00"`,
  String.raw`"a\\u"`,
];

/** Escapes each character that must be escaped, and each other one for which `isEscaped` returns true. */
function print(text: string, isEscaped: () => boolean): string {
  const units = text.split("").map((unit) => {
    if (unit === '"' || unit === "\\") return `\\${unit}`;
    const isForced = unit < " " || isEscaped();
    return isForced ? `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}` : unit;
  });
  return `"${units.join("")}"`;
}

const isObject = (model: Model): model is Extract<Model, { members: unknown }> =>
  typeof model === "object" && model !== null && !Array.isArray(model);

/** Returns the text of a model. Before each member, V8 learns that a name with a backslash follows the members so far. */
function writeText(model: Model, isEscaped: () => boolean): string {
  if (typeof model === "string") return print(model, isEscaped);
  if (typeof model === "number") return Object.is(model, -0) ? "-0" : String(model);
  if (Array.isArray(model)) return `[${model.map((item) => writeText(item, isEscaped)).join(" , ")}]`;
  if (!isObject(model)) return String(model);
  const members: string[] = [];
  for (const [name, value] of model.members) {
    for (const poison of poisons) JSON.parse(`{${[...members, `${poison}:1`].join(",")}}`);
    members.push(`${print(name, isEscaped)} :${writeText(value, isEscaped)}`);
  }
  return `{${members.join(",")}}`;
}

function toValue(model: Model): unknown {
  if (Array.isArray(model)) return model.map(toValue);
  if (!isObject(model)) return model;
  const members = new Map(model.members.map(([name, value]) => [name, toValue(value)]));
  return Object.fromEntries(members);
}

/** Order of members matters, and `toEqual` ignores it. */
const withOrder = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withOrder);
  return typeof value === "object" && value !== null
    ? Object.keys(value).map((name) => [name, withOrder((value as Record<string, unknown>)[name])])
    : value;
};

describe("parseJson", () => {
  it("reads every text as written after V8 has parsed names with backslashes", () => {
    fc.assert(
      fc.property(models, fc.array(fc.boolean(), { minLength: 1 }), (model, choices) => {
        let next = 0;
        const text = ` ${writeText(model, () => choices[next++ % choices.length] === true)}\n`;
        const expected = withOrder(toValue(model));
        expect(withOrder(parseJson(text))).toEqual(expected);
        expect(withOrder(parseJson(JSON.stringify(parseExactly(text))))).toEqual(expected);
      }),
      { numRuns: 2_000 },
    );
  });

  it("is still necessary: V8 reads an escaped name as one that another text contained", () => {
    JSON.parse(String.raw`{"necessary":1,"\\":1}`);
    const text = String.raw`{"necessary":1,"\u0061":2}`;
    // If this fails, V8 has fixed the bug, and `parseJson` can become `JSON.parse`.
    expect(Object.keys(JSON.parse(text))).toEqual(["necessary", "\\"]);
    expect(parseJson(text)).toEqual({ necessary: 1, a: 2 });
  });

  it("rejects what `JSON.parse` rejects", () => {
    for (const text of ["", "{", String.raw`{"\u0061":1,}`, String.raw`{"\u006":1}`, String.raw`{"\":1}`]) {
      expect(() => parseJson(text), text).toThrow(SyntaxError);
    }
  });

  it("reads deeply nested texts with escaped names", () => {
    const depth = 200_000;
    let value = parseJson(`${"[".repeat(depth)}{"\\u0061":1}${"]".repeat(depth)}`);
    for (let level = 0; level < depth; level++) [value] = value as unknown[];
    expect(value).toEqual({ a: 1 });
  });
});

describe("parseExactly", () => {
  it("keeps the spelling of numbers in a text with an escaped name", () => {
    expect(JSON.stringify(parseExactly(String.raw`{"\u0061":1.50,"b":[12345678901234567890,-0,1]}`))).toBe(
      '{"a":1.50,"b":[12345678901234567890,-0,1]}',
    );
  });
});

describe("hasEscapedName", () => {
  it.each([
    [String.raw`{"\u0061":1}`, true],
    [`{"a":"\\n" , "b\\n" \n : 1}`, true],
    [String.raw`{"a":"\":","b":["\\\\",":\":"]}`, false],
    [String.raw`{"a":"\"","\\":1}`, true],
    [String.raw`"\\"`, false],
    ['{"a":1}', false],
  ])("returns for %s whether a backslash is in a name: %s", (text, expected) => {
    expect(hasEscapedName(text)).toBe(expected);
  });
});
