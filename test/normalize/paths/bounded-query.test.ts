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

describe("the cost limit of a path", () => {
  const wide = Array.from({ length: 2_000 }, (_, index) => ({ a: index, b: "x".repeat(50) }));
  const members = Object.fromEntries(wide.entries());
  const copies = { ...members, one: { ...members }, two: { ...members } };
  let deep: unknown = wide;
  for (let level = 0; level < 100; level++) deep = [deep];

  it.each([
    ["a filter that counts the document at each of its nodes", "$[?count($..*) > 5]", wide],
    ["a path with two descents", "$..*..*", deep],
    ["a filter that compares parts of the document at each of its nodes", "$[?$.one == $.two]", copies],
    ["the length of the document at each of its nodes", "$[?length($) == 1]", copies],
  ])("rejects %s before evaluation reads three values per node of the budget", (_, path, data) => {
    expect(countReadsUntilError(path, data, "rfc9535", 20_000)).toBeLessThan(3 * 20_000);
  });

  const patterns = (count: number, each: (index: number) => string): unknown =>
    Array.from({ length: count }, (_, index) => ({ a: "x", p: each(index) }));
  it.each([
    ["many", patterns(200, (index) => `pattern ${index}`)],
    ["large", patterns(1, () => "(?:a{100}){100}")],
    ["long", patterns(1, () => "\\p{L}".repeat(1_000))],
  ])("rejects %s patterns from the document before compiling them", (_, data) => {
    expect(() => run("$[?match(@.a, @.p)]", data, "rfc9535", { left: 150_000 })).toThrow(PathBudgetError);
  });

  it("charges a pattern from the document once per query, and equally in each query", () => {
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

  it("rejects a jsonpath-plus path with two descents after a few reads", () => {
    expect(countReadsUntilError("$..*..*", wide, "jsonpath-plus", 20_000)).toBeLessThan(3 * 20_000);
  });

  it("matches a pattern that causes catastrophic backtracking in other engines", () => {
    const data = [{ a: `${"a".repeat(5_000)}!` }];
    expect(runToEnd(() => select("$[?match(@.a, '(a+)+$')]", data))).toEqual([]);
  });

  it("allows a simple path to visit a large document completely", () => {
    expect(select("$[*].a", wide)).toHaveLength(2_000);
    expect(
      select(
        "$[*]",
        Array.from({ length: 90_000 }, () => 1),
      ),
    ).toHaveLength(90_000);
  });

  it("rejects a deeply nested document before the stack overflows", () => {
    const brackets = (levels: number): unknown => JSON.parse("[".repeat(levels) + "]".repeat(levels));
    expect(select("$..*", brackets(1_000))).toHaveLength(999);
    expect(() => run("$..*", brackets(100_000))).toThrow(PathBudgetError);
  });
});

describe("patterns (RFC 9485)", () => {
  it.each([
    ["match covers the whole string", "match", "b", "abc", false],
    ["search covers any part of the string", "search", "b", "abc", true],
    ["match covers whole alternatives", "match", "a|bc", "abc", false],
    ["a dot does not match a line feed", "match", "a.c", "a\nc", false],
    ["a dot does not match a carriage return", "match", "a.c", "a\rc", false],
    ["a dot matches a line separator", "match", "a.c", "a\u2028c", true],
    ["a dot matches one character outside the BMP", "match", "a.c", "a😀c", true],
    ["a dot in a class matches a dot", "match", "a[.]c", "abc", false],
    ["an escaped dot matches a dot", "match", "a\\\\.c", "abc", false],
    ["categories are supported", "match", "\\\\p{Lu}+", "ÄÖ", true],
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
  ])("the path %s yields no value", (_, path) => {
    expect(select(path, [{ a: "1a", n: 1, open: "(", ahead: "(?=a)", closing: "1a)|(b" }])).toEqual([]);
  });

  it("can be taken from the document", () => {
    const data = { values: ["abc", "b", "bc"], regex: "b.?", list: ["^b$", "abc"] };
    expect(select("$.values[?match(@, $.regex)]", data)).toEqual(["b", "bc"]);
    expect(select("$.values[?search(@, $.regex)]", data)).toEqual(["abc", "b", "bc"]);
    expect(select("$.values[?search(@, value($..list[0]))]", data)).toEqual(["b"]);
  });

  it("never match a value that is not a string", () => {
    expect(select("$[?search(@, '1')]", [1, null, ["1"], "1"])).toEqual(["1"]);
  });
});
