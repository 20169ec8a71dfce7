import fc from "fast-check";
import { expect } from "vitest";
import { compileLinearRegExp } from "../../../src/lib/regexp/linear-regexp.ts";

/** Compares random patterns with the native engine, each on a few random texts. */
export function compareRandomPatterns(numRuns: number): void {
  const atom = fc.constantFrom(
    ...[
      "a",
      "b",
      ".",
      "\\s",
      "\\S",
      "\\w",
      "\\d",
      "[ab]",
      "[^a]",
      "[a-c-]",
      "[\\s\\d]",
      "\\b",
      "^",
      "$",
      "-",
      "\\.",
    ],
  );
  const quantifier = fc.constantFrom("", "", "*", "+", "?", "{2}", "{1,}", "{0,2}", "*?");
  const { pattern } = fc.letrec<{ pattern: string; part: string }>((tie) => ({
    part: fc.oneof(
      { maxDepth: 3 },
      fc.tuple(atom, quantifier).map(([a, q]) => (/^(?:\\b|\^|\$)$/.test(a) ? a : a + q)),
      fc.tuple(tie("pattern"), quantifier).map(([p, q]) => `(${p})${q}`),
      fc.tuple(tie("pattern"), tie("pattern")).map(([p, q]) => `(?:${p}|${q})`),
    ),
    pattern: fc.array(tie("part"), { minLength: 1, maxLength: 4 }).map((parts) => parts.join("")),
  }));
  const text = fc.string({
    unit: fc.constantFrom("a", "b", "-", ".", " ", "\n", "7", "é", "😀"),
    maxLength: 8,
  });
  fc.assert(
    fc.property(pattern, fc.array(text, { minLength: 3, maxLength: 8 }), (source, texts) => {
      const linear = compileLinearRegExp(source);
      const native = new RegExp(source, "u");
      for (const each of texts) expect(linear.test(each)).toBe(native.test(each));
    }),
    { numRuns },
  );
}
