import { expect, test } from "vitest";
import { compileLinearRegExp } from "../../../src/lib/regexp/linear-regexp.ts";
import { runToEnd } from "../../support/run-to-end.ts";
import { compareRandomPatterns } from "./random-patterns.ts";

test("the linear-time RegExp engine matches a pattern that causes catastrophic backtracking in other engines", () => {
  const pattern = compileLinearRegExp("^(a+)+$");
  expect(runToEnd(() => pattern.test(`${"a".repeat(40)}!`))).toBe(false);
  expect(runToEnd(() => pattern.test(`${"a".repeat(100_000)}!`))).toBe(false);
  expect(runToEnd(() => pattern.test("a".repeat(40)))).toBe(true);
});

test.each([
  ["(?=a)b", "look-around"],
  ["(?!a)b", "look-around"],
  ["(?<=a)b", "look-around"],
  ["(?<!a)b", "look-around"],
  ["(a)\\1", "back-reference"],
  ["(?<x>a)\\k<x>", "back-reference"],
  ["(a", "Unterminated group"],
  ["a**", "Nothing to repeat"],
  ["(?s:.)", "modifiers"],
  ["((a{100}){100}){100}", "repeat"],
  ["a".repeat(20_001), "at most 20000 characters"],
])("the linear-time RegExp engine rejects %s with the reason: %s", (source, reason) => {
  expect(() => compileLinearRegExp(source)).toThrow(reason);
});

const TEXTS = [
  ...[
    "",
    "a",
    "b",
    "ab",
    "aab",
    "A",
    "-",
    "2020-01-02",
    "a-b",
    "é",
    "😀",
    "\ud83d",
    "\u2028",
    "\ufeff",
    "\v",
  ],
  ...["\n", "a\nb", "_", "[", "]", "^", "\\", "/", "\b", "\0", "\x01", "λ", "Ж", "9", " ", "a.b", "{", "ſ"],
];

test.each([
  ...[
    "",
    "a|b",
    "^$",
    "^.$",
    "^a.b$",
    "^[^]$",
    "[]",
    "^\\s$",
    "^\\S$",
    "^[\\s]$",
    "^[^\\s]$",
    "^[\\S]$",
    "^[\\Sa]$",
  ],
  ...[
    "^\\w+$",
    "\\W",
    "^\\d{4}-\\d\\d-\\d\\d$",
    "^[a-c-]$",
    "^[-a]$",
    "^[\\w-]+$",
    "^[\\]\\[]$",
    "^[[]$",
    "\\/",
  ],
  ...[
    "^\\cA$",
    "^\\x01$",
    "^\\0$",
    "^[\\b]$",
    "\\bb",
    "\\Bb",
    "^\\u{1F600}$",
    "^\\uD83D\\uDE00$",
    "^[\\u{1F600}]$",
  ],
  ...[
    "^😀$",
    "^[😀-😂]$",
    "^\\p{L}$",
    "^\\P{L}$",
    "^[\\p{Lu}_]$",
    "^\\p{Script=Greek}$",
    "^\\p{sc=Cyrillic}$",
  ],
  ...[
    "(?<year>\\d{4})",
    "(?:a){2,}b",
    "^a{0,2000}b$",
    "^a{1,}?b$",
    "^(?:a{1500})?$",
    "(?i:A)b",
    "^[\\^\\\\]$",
    "^\\{$",
  ],
  ...["^(|a)*$", "^(a*)*$", "^a{0}$", "[\\d.]", "^[!-~]$", "\\p{gc=Nd}", "^\\p{Letter}+$"],
])("the linear-time RegExp engine matches the same texts as the native engine for %s", (source) => {
  const linear = compileLinearRegExp(source);
  const native = new RegExp(source, "u");
  for (const text of TEXTS) expect([text, linear.test(text)]).toEqual([text, native.test(text)]);
});

test("the linear-time RegExp engine matches an escaped punctuation character literally", () => {
  expect(compileLinearRegExp("^\\d\\-\\d\\:[\\:\\-\\@]\\_$").test("1-2:@_")).toBe(true);
});

test("the linear-time RegExp engine supports only the flags i, s and u", () => {
  expect(compileLinearRegExp("^a.B$", "is").test("A\nb")).toBe(true);
  expect(compileLinearRegExp("^a.b$", "u").test("a\nb")).toBe(false);
  expect(() => compileLinearRegExp("a", "g")).toThrow("flags");
});

// More random patterns run in test/deep/linear-regexp.test.ts.
test("the linear-time RegExp engine matches the same texts as the native engine for random patterns", () => {
  compareRandomPatterns(50);
});
