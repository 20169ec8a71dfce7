import fc from "fast-check";
import { expect, it } from "vitest";
import { mergePatch } from "../../src/console/kit/resource/merge-patch.ts";
import { indentJson } from "../../src/console/kit/text/indent-json.ts";
import { visibleText } from "../../src/console/kit/text/visible.ts";

it("hidden characters of a text are shown by their numbers, and all others stay as they are", () => {
  const hidden =
    "\u0000\u0007\u001b\u007f\u00ad\u061c\u200b\u200d\u200e\u202e\u2028\u2066\u2069\ufeff\ufe0f\ud800";
  const shown = visibleText(`${hidden}\u{e0041}`);
  expect(shown).toMatch(/^[\x20-\x7e]+$/);
  expect(shown.match(/\\u/g)).toHaveLength([...hidden].length + 1);
  for (const text of ["plain\ttext\n", "Größe 漢字 עברית العربية", "🎉 naïve <b>&amp;"])
    expect(visibleText(text)).toBe(text);
});

it("indented JSON is the same JSON, its numbers and escapes spelled as they were received", () => {
  const text =
    '{"big":12345678901234567890.10,"e":1E+2,"esc":"\\u00e9\\n{[,:]}","same":1,"same":2,"none":{},"list":[ ]}';
  const indented = indentJson(text);
  expect(indented.split("\n")[1]).toBe('  "big": 12345678901234567890.10,');
  for (const part of ["1E+2", '"\\u00e9\\n{[,:]}"', '"same": 1', '"same": 2', '"none": {}', '"list": []'])
    expect(indented).toContain(part);
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value);
      expect(JSON.parse(indentJson(text))).toEqual(JSON.parse(text));
    }),
  );
});

it("a change is a merge patch that makes of what was there what it shall be, and holds nothing else", () => {
  const leaf = fc.oneof(fc.integer(), fc.string(), fc.boolean(), fc.array(fc.integer(), { maxLength: 3 }));
  const name = fc.constantFrom("a", "b", "c");
  const inner = fc.dictionary(name, leaf, { maxKeys: 3 });
  const value = fc.dictionary(name, fc.oneof(leaf, inner), { maxKeys: 3 });
  fc.assert(
    fc.property(value, value, (before, after) => {
      expect(applied(before, mergePatch(before, after))).toEqual(after);
      expect(mergePatch(after, after)).toEqual({});
    }),
  );
  expect(mergePatch({ a: null, b: { c: 1, d: 2 } }, { b: { c: 1 } })).toEqual({ b: { d: null } });
});

type Json = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** RFC 7396, section 2. */
function applied(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const result: Record<string, unknown> = isObject(target) ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else result[name] = applied(result[name], value);
  }
  return result;
}
