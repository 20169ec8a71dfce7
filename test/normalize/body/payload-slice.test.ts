import { describe, expect, it } from "vitest";
import type { Location } from "../../../src/normalize/body/json-scan.ts";
import { JsonText } from "../../../src/normalize/body/payload-slice.ts";
import { runInNewThread } from "./slicing-thread.ts";

// test/deep/payload-slice.test.ts runs more random texts.
describe("JsonText, which cuts values out of JSON text,", () => {
  it("accepts the same random texts as JSON.parse, and cuts each value out as its original text", async () => {
    const counts = await runInNewThread("sliceRandomTexts", 20_240_601, 2_000);
    expect(counts.accepted).toBeGreaterThan(1_000);
    expect(counts.refused).toBeGreaterThan(400);
    expect(counts.slices).toBeGreaterThan(4_000);
  });

  it("finds every value and every array element of random texts at its location", async () => {
    const counts = await runInNewThread("findInRandomTexts", 7, 400);
    expect(counts.found).toBeGreaterThan(1_000);
    expect(counts.elements).toBeGreaterThan(200);
  });
});

/** A text that counts the characters read from it. */
class CountedText extends String {
  reads = 0;
  override charCodeAt(at: number): number {
    this.reads++;
    return super.charCodeAt(at);
  }
  override indexOf(searched: string, from = 0): number {
    const at = super.indexOf(searched, from);
    this.reads += (at === -1 ? this.length : at + 1) - from;
    return at;
  }
}

describe("the text of a JSON value cut out of a document", () => {
  it.each<[string, string, Location, string]>([
    [
      "includes whitespace inside the value, but not around it",
      '{ "a" : { "b" : 1 } }',
      ["a"],
      '{ "b" : 1 }',
    ],
    ["keeps the digits of large integers", '{"id":12345678901234567890}', ["id"], "12345678901234567890"],
    ["keeps the number spelling 1.0", '{"id":1.0}', ["id"], "1.0"],
    ["keeps the number spelling 1e3", "[1e3]", [0], "1e3"],
    ["keeps escape sequences unchanged", '{"a":"\\u0041\\/"}', ["a"], '"\\u0041\\/"'],
    ["is the last of several members with the same name", '{"a":1,"b":2,"a":3}', ["a"], "3"],
    ["is found if its member name is written with escape sequences", '{"\\u0061":1}', ["a"], "1"],
    [
      "is the last member with the name, even if the names are escaped differently",
      '{"a":{"x":1},"\\u0061":{"x":2}}',
      ["a", "x"],
      "2",
    ],
    ["ignores brackets and quotes in strings", '{"x":"}\\"]{","a":[1]}', ["a"], "[1]"],
    ["ends a string after an escaped backslash", '{"x":"\\\\","a":1}', ["a"], "1"],
    ["is found at a name that contains a backslash", '{"\\\\":1}', ["\\"], "1"],
    ["can be a number at the end of the text", " 42", [], "42"],
    ["can be a member named __proto__", '{"__proto__":{"a":1}}', ["__proto__", "a"], "1"],
  ])("%s", (_, text, location, expected) => {
    const json = JsonText.parse(text);
    expect(json.cut([{ value: "any", location }])[0]?.text).toBe(expected);
  });

  it("is itself a JSON text from which values can be cut", () => {
    const inner = JsonText.parse('{"a":[{"n":1},{"n":2.0}]}').cut([
      { value: [{ n: 1 }, { n: 2 }], location: ["a"] },
    ])[0];
    expect(inner?.elements()[1]?.cut([{ value: 2, location: ["n"] }])[0]?.text).toBe("2.0");
  });

  it("is found in a single pass over the document, even if 20,000 values are cut out", () => {
    const value = Array.from({ length: 20_000 }, (_, id) => ({ id }));
    const text = new CountedText(JSON.stringify(value));
    const json = JsonText.parse(text as unknown as string);
    const cuts = json.cut(value.map(({ id }, index) => ({ value: id, location: [index, "id"] })));
    expect(cuts.map((cut) => Number(cut?.text))).toEqual(value.map(({ id }) => id));
    expect(text.reads).toBeGreaterThan(text.length / 2);
    expect(text.reads).toBeLessThan(text.length * 4);
  });
});
