import { describe, expect, it } from "vitest";
import { PathBudgetError } from "../../../src/normalize/paths/path.ts";
import { runToEnd } from "../../support/run-to-end.ts";
import { compile, run, type Syntax, select } from "./support.ts";

/** The data, with each read of it counted. */
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

function readsUntilRefused(path: string, data: unknown, syntax: Syntax, left: number): number {
  const counted = countReads(data);
  expect(() => run(path, counted.data, syntax, { left })).toThrow(PathBudgetError);
  return counted.reads();
}

describe("the cost of a path is bounded", () => {
  const wide = Array.from({ length: 2_000 }, (_, index) => ({ a: index, b: "x".repeat(50) }));
  const members = Object.fromEntries(wide.entries());
  const twins = { ...members, one: { ...members }, two: { ...members } };
  let deep: unknown = wide;
  for (let level = 0; level < 100; level++) deep = [deep];

  it.each([
    ["a filter that counts the document at each of its nodes", "$[?count($..*) > 5]", wide],
    ["a path of two descents", "$..*..*", deep],
    ["a filter that compares parts of the document at each of its nodes", "$[?$.one == $.two]", twins],
    ["the length of the document at each of its nodes", "$[?length($) == 1]", twins],
  ])("%s is refused before it has read three values per node of its budget", (_, path, data) => {
    expect(readsUntilRefused(path, data, "rfc9535", 20_000)).toBeLessThan(3 * 20_000);
  });

  const patterns = (count: number, each: (index: number) => string): unknown =>
    Array.from({ length: count }, (_, index) => ({ a: "x", p: each(index) }));
  it.each([
    ["many", patterns(200, (index) => `pattern ${index}`)],
    ["large", patterns(1, () => "(?:a{100}){100}")],
    ["long", patterns(1, () => "\\p{L}".repeat(1_000))],
  ])("%s patterns out of the document are refused before they are compiled", (_, data) => {
    expect(() => run("$[?match(@.a, @.p)]", data, "rfc9535", { left: 150_000 })).toThrow(PathBudgetError);
  });

  it("a pattern out of the document is paid for once in a query, and as much in the next", () => {
    const result = compile("$.values[?match(@, $.p)]");
    if (!result.ok || result.value.path.kind !== "query") throw new Error("no query");
    const spent = (count: number): number => {
      const budget = { left: 100_000 };
      result.value.path.kind === "query" &&
        result.value.path.select({ values: Array(count).fill("x"), p: "a+b" }, budget);
      return 100_000 - budget.left;
    };
    expect(spent(1)).toBeGreaterThan(3 * 128);
    expect(spent(1)).toBe(spent(1));
    expect(spent(100) - spent(1)).toBeLessThan(100 * 16);
  });

  it("two descents in the syntax of jsonpath-plus are refused before that too", () => {
    expect(readsUntilRefused("$..*..*", wide, "jsonpath-plus", 20_000)).toBeLessThan(3 * 20_000);
  });

  it("a pattern on which a backtracking engine would not end is answered", () => {
    const data = [{ a: `${"a".repeat(5_000)}!` }];
    expect(runToEnd(() => select("$[?match(@.a, '(a+)+$')]", data))).toEqual([]);
  });

  it("a large document may be read whole by a simple path", () => {
    expect(select("$[*].a", wide)).toHaveLength(2_000);
    expect(
      select(
        "$[*]",
        Array.from({ length: 90_000 }, () => 1),
      ),
    ).toHaveLength(90_000);
  });

  it("a deeply nested document does not overflow the stack", () => {
    const brackets = (levels: number): unknown => JSON.parse("[".repeat(levels) + "]".repeat(levels));
    expect(select("$..*", brackets(1_000))).toHaveLength(999);
    expect(() => run("$..*", brackets(100_000))).toThrow(PathBudgetError);
  });
});

describe("patterns (RFC 9485)", () => {
  it.each([
    ["match takes the whole string", "match", "b", "abc", false],
    ["search takes any part of it", "search", "b", "abc", true],
    ["alternatives are taken whole by match", "match", "a|bc", "abc", false],
    ["a dot is no line feed", "match", "a.c", "a\nc", false],
    ["a dot is no carriage return", "match", "a.c", "a\rc", false],
    ["a dot is a line separator", "match", "a.c", "a\u2028c", true],
    ["a dot is one character beyond the basic plane", "match", "a.c", "a😀c", true],
    ["a dot in a class is a dot", "match", "a[.]c", "abc", false],
    ["an escaped dot is a dot", "match", "a\\\\.c", "abc", false],
    ["categories are known", "match", "\\\\p{Lu}+", "ÄÖ", true],
  ])("%s", (_, name, pattern, text, expected) => {
    expect(select(`$[?${name}(@, '${pattern}')]`, [text])).toHaveLength(expected ? 1 : 0);
  });

  it.each([
    ["a pattern that is no string", "$[?match(@.a, 1)]"],
    ["a pattern that the document lacks", "$[?search(@.a, @.none)]"],
    ["a pattern out of the document that is no string", "$[?search(@.a, @.n)]"],
    ["a pattern out of the document that is not one", "$[?search(@.a, @.open)]"],
    ["a pattern out of the document that no linear engine knows", "$[?search(@.a, @.ahead)]"],
    ["a pattern out of the document that closes what it did not open", "$[?match(@.a, @.closing)]"],
  ])("%s yields nothing", (_, path) => {
    expect(select(path, [{ a: "1a", n: 1, open: "(", ahead: "(?=a)", closing: "1a)|(b" }])).toEqual([]);
  });

  it("out of the document match as those of the path do", () => {
    const data = { values: ["abc", "b", "bc"], regex: "b.?", list: ["^b$", "abc"] };
    expect(select("$.values[?match(@, $.regex)]", data)).toEqual(["b", "bc"]);
    expect(select("$.values[?search(@, $.regex)]", data)).toEqual(["abc", "b", "bc"]);
    expect(select("$.values[?search(@, value($..list[0]))]", data)).toEqual(["b"]);
  });

  it("match strings only", () => {
    expect(select("$[?search(@, '1')]", [1, null, ["1"], "1"])).toEqual(["1"]);
  });
});
