import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "vitest";
import { type Location, targetsOf } from "../../src/normalize/json-scan.ts";
import { JsonText } from "../../src/normalize/payload-slice.ts";
import { breakText, createRandom, randomText } from "./json-texts.ts";

interface Found {
  readonly value: unknown;
  readonly location: Location;
}

/** Every value inside, with the way to it. */
function everyValue(value: unknown, location: Location = []): Found[] {
  const inside: Found[] = [{ value, location }];
  if (Array.isArray(value)) {
    value.forEach((child, index) => {
      inside.push(...everyValue(child, [...location, index]));
    });
  } else if (typeof value === "object" && value !== null) {
    for (const [name, child] of Object.entries(value)) inside.push(...everyValue(child, [...location, name]));
  }
  return inside;
}

function parseOrUndefined(text: string): JsonText | undefined {
  try {
    return JsonText.parse(text);
  } catch {
    return undefined;
  }
}

function isAccepted(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

describe("slicing, against JSON.parse over 100,000 texts", () => {
  it("cuts out, of what JSON.parse accepts, every value as a text of that value, and refuses all else", () => {
    const random = createRandom(20_240_601);
    const counts = { accepted: 0, refused: 0, slices: 0 };
    for (let round = 0; round < 100_000; round++) {
      const whole = randomText(random);
      const text = round % 2 === 0 ? whole : breakText(random, whole);
      const json = parseOrUndefined(text);
      if ((json !== undefined) !== isAccepted(text)) throw new Error(`differs on ${JSON.stringify(text)}`);
      if (json === undefined) {
        counts.refused++;
        continue;
      }
      counts.accepted++;
      const found = everyValue(json.value);
      const cuts = json.cut(found);
      found.forEach(({ value, location }, index) => {
        const slice = cuts[index]?.text ?? "";
        const isTight = slice === slice.trim() && slice !== "";
        if (!isTight || !isDeepStrictEqual(JSON.parse(slice), value)) {
          throw new Error(
            `${JSON.stringify(text)} at ${JSON.stringify(location)} gave ${JSON.stringify(slice)}`,
          );
        }
        counts.slices++;
      });
    }
    expect(counts.accepted).toBeGreaterThan(50_000);
    expect(counts.refused).toBeGreaterThan(20_000);
    expect(counts.slices).toBeGreaterThan(200_000);
  });

  it("finds the same by one location at a time, and the same elements of arrays", () => {
    const random = createRandom(7);
    for (let round = 0; round < 5_000; round++) {
      const json = JsonText.parse(randomText(random));
      for (const { location, value } of everyValue(json.value)) {
        const found = json.find(targetsOf([location]), value);
        expect(JSON.parse(found?.text ?? "")).toEqual(value);
        expect(found?.elements().map(({ text }) => JSON.parse(text))).toEqual(
          Array.isArray(value) ? value : [],
        );
      }
    }
  });
});

describe("a slice", () => {
  it.each<[string, string, Location, string]>([
    ["keeps whitespace inside a value, and none around it", '{ "a" : { "b" : 1 } }', ["a"], '{ "b" : 1 }'],
    ["keeps the digits of large integers", '{"id":12345678901234567890}', ["id"], "12345678901234567890"],
    ["keeps 1.0", '{"id":1.0}', ["id"], "1.0"],
    ["keeps 1e3", "[1e3]", [0], "1e3"],
    ["keeps escapes as they are", '{"a":"\\u0041\\/"}', ["a"], '"\\u0041\\/"'],
    ["is the last of several members of one name", '{"a":1,"b":2,"a":3}', ["a"], "3"],
    ["is found under a name spelled with escapes", '{"\\u0061":1}', ["a"], "1"],
    ["takes the last one, however its name is spelled", '{"a":{"x":1},"\\u0061":{"x":2}}', ["a", "x"], "2"],
    ["is not taken in by brackets and quotes in strings", '{"x":"}\\"]{","a":[1]}', ["a"], "[1]"],
    ["is not taken in by an escaped backslash before a quote", '{"x":"\\\\","a":1}', ["a"], "1"],
    ["is found under a name that holds a backslash", '{"\\\\":1}', ["\\"], "1"],
    ["may be a number at the text's end", " 42", [], "42"],
    ["may be a member called __proto__", '{"__proto__":{"a":1}}', ["__proto__", "a"], "1"],
  ])("%s", (_, text, location, expected) => {
    const json = JsonText.parse(text);
    expect(json.cut([{ value: "any", location }])[0]?.text).toBe(expected);
  });

  it("of a slice is taken within it", () => {
    const inner = JsonText.parse('{"a":[{"n":1},{"n":2.0}]}').cut([
      { value: [{ n: 1 }, { n: 2 }], location: ["a"] },
    ])[0];
    expect(inner?.elements()[1]?.cut([{ value: 2, location: ["n"] }])[0]?.text).toBe("2.0");
  });

  it("takes time in proportion to the text, not to the number of values asked for", () => {
    const value = Array.from({ length: 20_000 }, (_, id) => ({ id }));
    const json = JsonText.parse(JSON.stringify(value));
    const found = value.map(({ id }, index) => ({ value: id, location: [index, "id"] }));
    const startedMs = performance.now();
    expect(json.cut(found)).toHaveLength(20_000);
    // One scan each would be 20,000 times 280 kB: minutes.
    expect(performance.now() - startedMs).toBeLessThan(1_000);
  });
});
