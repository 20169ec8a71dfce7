import { describe, expect, it } from "vitest";
import { createPathCompiler, type PathRoot } from "../../../src/normalize/paths/jsonpath.ts";
import { type PathBudget, PathBudgetError } from "../../../src/normalize/paths/path.ts";
import { runToEnd } from "../../support/run-to-end.ts";

const item: PathRoot = {};
const headers: PathRoot = { hasLowerCaseNames: true };
const query: PathRoot = {};
const named = new Map([
  ["headers", headers],
  ["query", query],
]);

type Syntax = "rfc9535" | "jsonpath-plus";

function compile(text: string, syntax: Syntax = "rfc9535") {
  return createPathCompiler({ syntax, item, named })(text);
}

function messageOf(text: string, syntax?: Syntax): string {
  const result = compile(text, syntax);
  return result.ok ? "compiles" : result.error;
}

interface Found {
  readonly kind: string;
  readonly values: readonly unknown[];
}

function run(text: string, data: unknown, syntax?: Syntax, budget: PathBudget = { left: 100_000 }): Found {
  const result = compile(text, syntax);
  if (!result.ok) throw new Error(result.error);
  const { path } = result.value;
  if (path.kind === "query")
    return { kind: "query", values: path.select(data, budget).map(({ value }) => value) };
  const value = path.get(data);
  return { kind: "singular", values: value === undefined ? [] : [value] };
}

const select = (text: string, data: unknown, syntax?: Syntax): readonly unknown[] =>
  run(text, data, syntax).values;

/** RFC 9535, figure 1. */
const bookstore = {
  store: {
    book: [
      { category: "reference", author: "Nigel Rees", title: "Sayings of the Century", price: 8.95 },
      { category: "fiction", author: "Evelyn Waugh", title: "Sword of Honour", price: 12.99 },
      {
        category: "fiction",
        author: "Herman Melville",
        title: "Moby Dick",
        isbn: "0-553-21311-3",
        price: 8.99,
      },
      {
        category: "fiction",
        author: "J. R. R. Tolkien",
        title: "The Lord of the Rings",
        isbn: "0-395-19395-8",
        price: 22.99,
      },
    ],
    bicycle: { color: "red", price: 399 },
  },
};
const [sayings, sword, moby, rings] = bookstore.store.book;

describe("RFC 9535, table 2 (the bookstore)", () => {
  it.each<[string, readonly unknown[]]>([
    ["$.store.book[*].author", ["Nigel Rees", "Evelyn Waugh", "Herman Melville", "J. R. R. Tolkien"]],
    ["$..author", ["Nigel Rees", "Evelyn Waugh", "Herman Melville", "J. R. R. Tolkien"]],
    ["$.store.*", [bookstore.store.book, bookstore.store.bicycle]],
    ["$.store..price", [8.95, 12.99, 8.99, 22.99, 399]],
    ["$..book[2]", [moby]],
    ["$..book[2].author", ["Herman Melville"]],
    ["$..book[2].publisher", []],
    ["$..book[-1]", [rings]],
    ["$..book[0,1]", [sayings, sword]],
    ["$..book[:2]", [sayings, sword]],
    ["$..book[?@.isbn]", [moby, rings]],
    ["$..book[?@.price<10]", [sayings, moby]],
  ])("%s", (path, expected) => {
    expect(select(path, bookstore)).toEqual(expected);
  });

  it("$..* yields all values below the root", () => {
    expect(select("$..*", bookstore)).toHaveLength(27);
  });
});

describe("RFC 9535, examples of sections 2.2 to 2.5", () => {
  const letters = ["a", "b", "c", "d", "e", "f", "g"];
  const filtered = {
    a: [3, 5, 1, 2, 4, 6, { b: "j" }, { b: "k" }, { b: {} }, { b: "kilo" }],
    o: { p: 1, q: 2, r: 3, s: 5, t: { u: 6 } },
    e: "f",
  };
  const nested = { o: { j: 1, k: 2 }, a: [5, 3, [{ j: 4 }, { k: 6 }]] };
  it.each<[string, unknown, readonly unknown[]]>([
    ["$", { k: "v" }, [{ k: "v" }]],
    ["$.o['j j']", { o: { "j j": { "k.k": 3 } } }, [{ "k.k": 3 }]],
    ["$.o['j j']['k.k']", { o: { "j j": { "k.k": 3 } } }, [3]],
    ['$["\'"]["@"]', { "'": { "@": 2 } }, [2]],
    ["$[1]", ["a", "b"], ["b"]],
    ["$[-2]", ["a", "b"], ["a"]],
    ["$[-3]", ["a", "b"], []],
    ["$.o[*, *]", { o: { j: 1, k: 2 } }, [1, 2, 1, 2]],
    ["$[1:3]", letters, ["b", "c"]],
    ["$[5:]", letters, ["f", "g"]],
    ["$[1:5:2]", letters, ["b", "d"]],
    ["$[5:1:-2]", letters, ["f", "d"]],
    ["$[::-1]", letters, ["g", "f", "e", "d", "c", "b", "a"]],
    ["$[0, 3]", letters, ["a", "d"]],
    ["$.a[?@.b == 'kilo']", filtered, [{ b: "kilo" }]],
    ["$.a[?@>3.5]", filtered, [5, 4, 6]],
    ["$.a[?@.b]", filtered, [{ b: "j" }, { b: "k" }, { b: {} }, { b: "kilo" }]],
    ["$[?@.*]", filtered, [filtered.a, filtered.o]],
    ["$.o[?@<3, ?@<3]", filtered, [1, 2, 1, 2]],
    ["$.a[?@<2 || @.b == 'k']", filtered, [1, { b: "k" }]],
    ["$.a[?match(@.b, '[jk]')]", filtered, [{ b: "j" }, { b: "k" }]],
    ["$.a[?search(@.b, '[jk]')]", filtered, [{ b: "j" }, { b: "k" }, { b: "kilo" }]],
    ["$.o[?@>1 && @<4]", filtered, [2, 3]],
    ["$.a[?@ == @]", filtered, filtered.a],
    ["$..j", nested, [1, 4]],
    ["$..[0]", nested, [5, { j: 4 }]],
    ["$.a..[0, 1]", nested, [5, 3, { j: 4 }, { k: 6 }]],
    ["$.a[?length(@.b) == 4]", filtered, [{ b: "kilo" }]],
    ["$[?count(@.*) == 5]", filtered, [filtered.o]],
    ["$.a", { a: null }, [null]],
    ["$.a[0]", { a: null }, []],
    ["$[?@.a.d || @.a.e]", [{ a: { d: 1 } }, { a: {} }], [{ a: { d: 1 } }]],
  ])("%s over %j", (path, data, expected) => {
    expect(select(path, data)).toEqual(expected);
  });

  it.each([
    "",
    "a",
    ".a",
    "$.",
    "$..",
    "$[",
    "$['a'",
    "$[01]",
    "$[-0]",
    "$[1.0]",
    "$.1",
    "$['\\z']",
    "$[?]",
    "$[?@.a == ]",
    "$[?@.a == @.*]",
    "$[?length(@.*) == 1]",
    "$[?unknown(@.a)]",
    " $",
    "$ ",
    "$.a[(@.length-1)]",
    "$[9007199254740992]",
  ])("refuses %j", (path) => {
    expect(compile(path).ok).toBe(false);
  });
});

describe("a singular path", () => {
  it.each([
    "$",
    "$.a",
    "$['a'][0].b",
    "$.a[-1]",
    '$ ["a"]',
  ])("%s is read by an own accessor, not by the library", (path) => {
    expect(run(path, {}).kind).toBe("singular");
  });

  it.each([
    "constructor",
    "toString",
    "__proto__",
    "hasOwnProperty",
    "length",
  ])("does not find the inherited member %s", (name) => {
    for (const data of [{}, [], "text", 1, null, JSON.parse('{"a":1}')])
      expect(select(`$.${name}`, data)).toEqual([]);
  });

  it("finds an own member under an inherited name", () => {
    expect(select("$.constructor.__proto__", JSON.parse('{"constructor":{"__proto__":1}}'))).toEqual([1]);
  });

  it("has the same key in all spellings", () => {
    const keys = ["$.a.b", "$['a'].b", '$["a"]["b"]', "$.a['\\u0062']"].map((path) => {
      const result = compile(path);
      return result.ok ? result.value.path.key : undefined;
    });
    expect(new Set(keys).size).toBe(1);
  });

  it("with a negative index gives the place of its value", () => {
    const result = compile("$.a[-1].b");
    const path = result.ok ? result.value.path : undefined;
    const target = path?.kind === "singular" ? path.targetsIn({ a: [1, 2, { b: 3 }] }) : undefined;
    expect(target?.children.get("a")?.children.get(2)?.children.get("b")?.slots).toEqual([0]);
  });
});

describe("a named root", () => {
  it("is the one that the path names, or the item for a plain $", () => {
    const roots = ["$", "$.headers", "$headers", "$query.a", "$headers['a']"].map((path) => {
      const result = compile(path);
      return result.ok ? result.value.root : undefined;
    });
    expect(roots).toEqual([item, item, headers, query, headers]);
  });

  it.each([
    "$headers['X-GitHub-Event']",
    "$headers['X-GitHub-Event','X-GitHub-Event'][0]",
  ])("of headers finds %s in any case", (path) => {
    const { values } = run(path, { "x-github-event": ["push"] });
    expect(values.flat()[0]).toBe("push");
  });

  it("keeps the case of all other names", () => {
    expect(select("$query.Ab", { Ab: 1, ab: 2 })).toEqual([1]);
    expect(select("$headers.A.B", { a: { B: 1, b: 2 } })).toEqual([1]);
  });

  it("that is unknown is refused with a list of the known ones", () => {
    expect(messageOf("$type")).toBe("unknown root $type; a path here begins with $, $headers, $query");
  });
});

describe("the error of an invalid path gives the reason and the place", () => {
  it.each([
    ["$.a[", /unclosed bracketed selection \(at character 5\)/],
    ["$headers[", /unclosed bracketed selection \(at character 10\)/],
    ["$..a..b..c", /more than 2 descents \(\.\.\) \(at character 8\)/],
    ["$[?@..a]..b[?@..c]", /more than 2 descents/],
    ["$[?match(@.a, '(?=a)')]", /linear time.*\(at character \d+\)/],
    ["$[?search(@.a, '(a)\\\\1')]", /linear time/],
    ["$[?match(@.a, 'a)|(b')]", /a bracket too many \(at character \d+\)/],
    ["type", /begins with \$/],
  ])("%s", (path, message) => {
    expect(messageOf(path)).toMatch(message);
  });

  it.each(["$.a[*].x^", "$.b.*~", "$.a.*@number()"])("%s names the syntax that would accept it", (path) => {
    expect(messageOf(path)).toMatch(/; with pathSyntax "jsonpath-plus" it is accepted$/);
    expect(messageOf(path, "jsonpath-plus")).toBe("compiles");
  });

  it.each(["$.a[", "$.a[?(@.b ==)]", "$..a..b..c"])("%s, wrong in either syntax, names none", (path) => {
    expect(messageOf(path)).not.toMatch(/pathSyntax/);
  });
});

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

describe("the function length()", () => {
  it("counts characters, not UTF-16 units", () => {
    expect(select("$[?length(@) == 2]", ["😀😀", "abcd", [1, 2], { a: 1, b: 2 }])).toHaveLength(3);
  });
});

describe("the syntax of jsonpath-plus", () => {
  const data = { a: [{ x: 1, "n.m": 2 }, { x: 3 }], b: { x: 4 } };
  it.each<[string, readonly unknown[]]>([
    ["$.a[*].x", [1, 3]],
    ["$..x", [4, 1, 3]],
    ["$.a[0:1].x", [1]],
    ["$.a[-1:].x", [3]],
    ["$.a[0]['x','n.m']", [1, 2]],
    ["$.b.*~", ["x"]],
    ["$.a[*].x^", [data.a[0], data.a[1]]],
    ["$.a[*].*@number()", [1, 2, 3]],
  ])("%s", (path, expected) => {
    expect([...select(path, data, "jsonpath-plus")].sort()).toEqual([...expected].sort());
  });

  it("gives the places of values, and none of member names", () => {
    const result = compile("$.a[*].x", "jsonpath-plus");
    const names = compile("$.b.*~", "jsonpath-plus");
    const nodes = [result, names].flatMap((compiled) =>
      compiled.ok && compiled.value.path.kind === "query"
        ? compiled.value.path.select(data, { left: 100 })
        : [],
    );
    expect(nodes).toEqual([
      { value: 1, location: ["a", 0, "x"] },
      { value: 3, location: ["a", 1, "x"] },
      { value: "x" },
    ]);
  });

  it.each([
    "$.a[?(@.x > 1)]",
    "$.a[?(process.exit())]",
    "$..[?(@.x)]",
    "$.a[(@.length-1)]",
    "$[?(@.constructor.constructor('return process')())]",
    "$.a[?@.x]",
    "$..book..a..b",
    "$.a.*@other()",
    "$.a.*@unknown()",
    "$.a[",
    "a.b",
  ])("refuses %s", (path) => {
    expect(compile(path, "jsonpath-plus").ok).toBe(false);
  });

  it.each([
    ["$.a[?(@.x == 'y')]", 4],
    ['$.a[?(@.x == "y]")].z', 4],
    ["$['n[?']..[?(@.x=='y')]", 11],
    ["$.a[(@['length']-1)]", 4],
  ])("says of %s that filters are refused", (path, at) => {
    expect(messageOf(path, "jsonpath-plus")).toBe(
      `filters and scripts are not accepted: ${path.slice(at - 1)} (at character ${at})`,
    );
  });
});
