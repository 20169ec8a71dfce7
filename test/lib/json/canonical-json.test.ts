import fc from "fast-check";
import { expect, test } from "vitest";
import { canonicalJson } from "../../../src/lib/json/canonical-json.ts";

test("canonical JSON has sorted members and parses to the original value", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = canonicalJson(value);
      expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
  expect(canonicalJson({ b: [1, { d: null, c: "ü" }], a: undefined, B: 1 })).toBe(
    '{"B":1,"b":[1,{"c":"ü","d":null}]}',
  );
  expect(canonicalJson(JSON.parse('{"b":1,"__proto__":2}'))).toBe('{"__proto__":2,"b":1}');
});
