import { describe, expect, it } from "vitest";
import { PathBudgetError } from "../../../src/normalize/paths/path.ts";
import { runToEnd } from "../../support/run-to-end.ts";
import { compile, run, type Syntax, select } from "./support.ts";

/** Wraps data in proxies that count each read access. */
function countReads(data: unknown): { readonly data: unknown; readonly reads: () => number } {
  let reads = 0;
  const known = new WeakMap<object, unknown>();
  const count = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null) return value;
    const counted = known.get(value) ?? new Proxy(value, traps);
    known.set(value, counted);
    return counted;
  };
  const traps: ProxyHandler<object> = {
    get(target, name) {
      reads++;
      return count(Reflect.get(target, name));
    },
    ownKeys(target) {
      const names = Reflect.ownKeys(target);
      reads += names.length;
      return names;
    },
  };
  return { data: count(data), reads: () => reads };
}

function countReadsUntilError(path: string, data: unknown, syntax: Syntax, left: number): number {
  const counted = countReads(data);
  expect(() => run(path, counted.data, syntax, { left })).toThrow(PathBudgetError);
  return counted.reads();
}

describe("the cost budget of a JSONPath query", () => {
  const wide = Array.from({ length: 2_000 }, (_, index) => ({ a: index, b: "x".repeat(50) }));
  const members = Object.fromEntries(wide.entries());
  const copies = { ...members, one: { ...members }, two: { ...members } };
  let deep: unknown = wide;
  for (let level = 0; level < 100; level++) deep = [deep];

  it.each([
    ["a filter that counts the document at each of its nodes", "$[?count($..*) > 5]", wide],
    ["a path with two recursive descents", "$..*..*", deep],
    ["a filter that compares parts of the document at each of its nodes", "$[?$.one == $.two]", copies],
    ["the length of the document at each of its nodes", "$[?length($) == 1]", copies],
  ])("stops %s before the number of values read exceeds three times the budget", (_, path, data) => {
    expect(countReadsUntilError(path, data, "rfc9535", 20_000)).toBeLessThan(3 * 20_000);
  });

  const patterns = (count: number, each: (index: number) => string): unknown =>
    Array.from({ length: count }, (_, index) => ({ a: "x", p: each(index) }));
  it.each([
    ["many", patterns(200, (index) => `pattern ${index}`)],
    ["large", patterns(1, () => "(?:a{100}){100}")],
    ["long", patterns(1, () => "\\p{L}".repeat(1_000))],
  ])("is exceeded by %s patterns from the document before the patterns are compiled", (_, data) => {
    expect(() => run("$[?match(@.a, @.p)]", data, "rfc9535", { left: 150_000 })).toThrow(PathBudgetError);
  });

  it("is charged once per query for compiling a pattern from the document", () => {
    const result = compile("$.values[?match(@, $.p)]");
    if (!result.ok || result.value.path.kind !== "query") throw new Error("no query");
    const cost = (count: number): number => {
      const budget = { left: 100_000 };
      result.value.path.kind === "query" &&
        result.value.path.select({ values: Array(count).fill("x"), p: "a+b" }, budget);
      return 100_000 - budget.left;
    };
    expect(cost(1)).toBeGreaterThan(3 * 128);
    expect(cost(1)).toBe(cost(1));
    expect(cost(100) - cost(1)).toBeLessThan(100 * 16);
  });

  it("stops a jsonpath-plus path with two recursive descents", () => {
    expect(countReadsUntilError("$..*..*", wide, "jsonpath-plus", 20_000)).toBeLessThan(3 * 20_000);
  });

  it("suffices for a pattern that causes catastrophic backtracking in other engines", () => {
    const data = [{ a: `${"a".repeat(5_000)}!` }];
    expect(runToEnd(() => select("$[?match(@.a, '(a+)+$')]", data))).toEqual([]);
  });

  it("suffices for a simple path that selects every element of a large array", () => {
    expect(select("$[*].a", wide)).toHaveLength(2_000);
    expect(
      select(
        "$[*]",
        Array.from({ length: 90_000 }, () => 1),
      ),
    ).toHaveLength(90_000);
  });

  it("stops a query on a deeply nested document before the stack overflows", () => {
    const brackets = (levels: number): unknown => JSON.parse("[".repeat(levels) + "]".repeat(levels));
    expect(select("$..*", brackets(1_000))).toHaveLength(999);
    expect(() => run("$..*", brackets(100_000))).toThrow(PathBudgetError);
  });
});

describe("patterns in JSONPath filters (RFC 9485)", () => {
  it.each([
    ["must match the whole string in match()", "match", "b", "abc", false],
    ["can match any part of the string in search()", "search", "b", "abc", true],
    ["must match the whole string with one alternative in match()", "match", "a|bc", "abc", false],
    ["do not match a line feed with a dot", "match", "a.c", "a\nc", false],
    ["do not match a carriage return with a dot", "match", "a.c", "a\rc", false],
    ["match a line separator (U+2028) with a dot", "match", "a.c", "a\u2028c", true],
    ["match one character outside the BMP with a dot", "match", "a.c", "a😀c", true],
    ["match only a dot with a dot in a character class", "match", "a[.]c", "abc", false],
    ["match only a dot with an escaped dot", "match", "a\\\\.c", "abc", false],
    ["support Unicode categories", "match", "\\\\p{Lu}+", "ÄÖ", true],
  ])("%s", (_, name, pattern, text, expected) => {
    expect(select(`$[?${name}(@, '${pattern}')]`, [text])).toHaveLength(expected ? 1 : 0);
  });

  it.each([
    ["a pattern that is not a string", "$[?match(@.a, 1)]"],
    ["a pattern that is missing in the document", "$[?search(@.a, @.none)]"],
    ["a pattern from the document that is not a string", "$[?search(@.a, @.n)]"],
    ["an invalid pattern from the document", "$[?search(@.a, @.open)]"],
    ["a pattern from the document that is not linear", "$[?search(@.a, @.ahead)]"],
    ["a pattern from the document with an unmatched closing parenthesis", "$[?match(@.a, @.closing)]"],
  ])("select no value if the filter has %s", (_, path) => {
    expect(select(path, [{ a: "1a", n: 1, open: "(", ahead: "(?=a)", closing: "1a)|(b" }])).toEqual([]);
  });

  it("can be values of the document", () => {
    const data = { values: ["abc", "b", "bc"], regex: "b.?", list: ["^b$", "abc"] };
    expect(select("$.values[?match(@, $.regex)]", data)).toEqual(["b", "bc"]);
    expect(select("$.values[?search(@, $.regex)]", data)).toEqual(["abc", "b", "bc"]);
    expect(select("$.values[?search(@, value($..list[0]))]", data)).toEqual(["b"]);
  });

  it("never match a value that is not a string", () => {
    expect(select("$[?search(@, '1')]", [1, null, ["1"], "1"])).toEqual(["1"]);
  });
});
