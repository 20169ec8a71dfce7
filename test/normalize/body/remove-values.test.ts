import { describe, expect, it } from "vitest";
import type { Location } from "../../../src/normalize/body/json-scan.ts";
import { JsonText } from "../../../src/normalize/body/payload-slice.ts";
import { removeValues } from "../../../src/normalize/body/remove-values.ts";

function remove(text: string, locations: readonly Location[]): string {
  const found = locations.map((location) => ({ location, value: undefined }));
  return removeValues(
    text,
    JsonText.parse(text)
      .cut(found)
      .flatMap((part) => part?.span ?? []),
  );
}

describe("a JSON text without some of its values", () => {
  it.each<[string, string, readonly Location[], string]>([
    ["keeps the other members as received", '{"n": 1.0,"a":1, "b":[1 ]}', [["a"]], '{"n": 1.0,"b":[1 ]}'],
    ["has no comma after a removed last member", '{"x":0, "a":1 }', [["a"]], '{"x":0 }'],
    ["is an empty object without its only member", '{"a":1}', [["a"]], "{}"],
    ["can lose all members", '{"a":1,"b":2}', [["b"], ["a"]], "{}"],
    ["can lose its last members", '{"x":0,"a":1,"b":2}', [["a"], ["b"]], '{"x":0}'],
    ["can lose its first members", '{"a":1,"b":2,"x":0}', [["a"], ["b"]], '{"x":0}'],
    ["can lose a value and a value inside of it", '{"a":{"b":1},"x":0}', [["a", "b"], ["a"]], '{"x":0}'],
    ["can lose elements", "[1,2,3]", [[0], [2]], "[2]"],
    ["loses names with escapes", '{"x":0,"a\\"b\\\\" : "}"}', [["x"], ['a"b\\']], "{}"],
    ["keeps commas in texts", '{"x":",","a":","}', [["a"]], '{"x":","}'],
    ["is the whole text if nothing is removed", " [1] ", [], " [1] "],
  ])("%s", (_, text, locations, expected) => {
    expect(remove(text, locations)).toBe(expected);
  });

  it("takes time proportional to its length", () => {
    const count = 50_000;
    const text = JSON.stringify(Array.from({ length: count }, (_, n) => ({ n, a: n })));
    const locations = Array.from({ length: count }, (_, n) => [n, "a"]);
    expect(remove(text, locations)).toBe(JSON.stringify(Array.from({ length: count }, (_, n) => ({ n }))));
  });
});
