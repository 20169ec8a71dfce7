import { describe, expect, it } from "vitest";
import { compile, headers, item, messageOf, query, run, select } from "./support.ts";

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

describe("JSONPath on the bookstore example of RFC 9535, table 2,", () => {
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
  ])("evaluates %s", (path, expected) => {
    expect(select(path, bookstore)).toEqual(expected);
  });

  it("selects all values below the root with $..*", () => {
    expect(select("$..*", bookstore)).toHaveLength(27);
  });
});

describe("JSONPath on the examples of RFC 9535, sections 2.2 to 2.5,", () => {
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
  ])("evaluates %s on %j", (path, data, expected) => {
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
  ])("rejects the invalid path %j", (path) => {
    expect(compile(path).ok).toBe(false);
  });
});

describe("a singular JSONPath (one that selects at most one value)", () => {
  it.each([
    "$",
    "$.a",
    "$['a'][0].b",
    "$.a[-1]",
    '$ ["a"]',
  ])("is evaluated without the JSONPath library: %s", (path) => {
    expect(run(path, {}).kind).toBe("singular");
  });

  it.each([
    "constructor",
    "toString",
    "__proto__",
    "hasOwnProperty",
    "length",
  ])("does not select the inherited JavaScript property %s", (name) => {
    for (const data of [{}, [], "text", 1, null, JSON.parse('{"a":1}')])
      expect(select(`$.${name}`, data)).toEqual([]);
  });

  it("selects a member of the document that has the name of an inherited JavaScript property", () => {
    expect(select("$.constructor.__proto__", JSON.parse('{"constructor":{"__proto__":1}}'))).toEqual([1]);
  });

  it("has the same cache key if it is written in another way", () => {
    const keys = ["$.a.b", "$['a'].b", '$["a"]["b"]', "$.a['\\u0062']"].map((path) => {
      const result = compile(path);
      return result.ok ? result.value.path.key : undefined;
    });
    expect(new Set(keys).size).toBe(1);
  });

  it("returns the location of a value that is selected by a negative index", () => {
    const result = compile("$.a[-1].b");
    const path = result.ok ? result.value.path : undefined;
    const target = path?.kind === "singular" ? path.targetsIn({ a: [1, 2, { b: 3 }] }) : undefined;
    expect(target?.children.get("a")?.children.get(2)?.children.get("b")?.slots).toEqual([0]);
  });
});

describe("a named root of a path, such as $headers", () => {
  it("is selected by its name, and `$` alone selects the item", () => {
    const roots = ["$", "$.headers", "$headers", "$query.a", "$headers['a']"].map((path) => {
      const result = compile(path);
      return result.ok ? result.value.root : undefined;
    });
    expect(roots).toEqual([item, item, headers, query, headers]);
  });

  it.each([
    "$headers['X-GitHub-Event']",
    "$headers['X-GitHub-Event','X-GitHub-Event'][0]",
  ])("ignores the case of header names: %s", (path) => {
    const { values } = run(path, { "x-github-event": ["push"] });
    expect(values.flat()[0]).toBe("push");
  });

  it("distinguishes upper and lower case in all names except header names", () => {
    expect(select("$query.Ab", { Ab: 1, ab: 2 })).toEqual([1]);
    expect(select("$headers.A.B", { a: { B: 1, b: 2 } })).toEqual([1]);
  });

  it("is rejected if it is unknown, with a list of the known roots", () => {
    expect(messageOf("$type")).toBe("unknown root $type; use one of $, $headers, $query");
  });
});

describe("the error message of an invalid path", () => {
  it.each([
    ["$.a[", /unclosed bracketed selection \(at character 5\)/],
    ["$headers[", /unclosed bracketed selection \(at character 10\)/],
    ["$..a..b..c", /more than 2 descents \(\.\.\) \(at character 8\)/],
    ["$[?@..a]..b[?@..c]", /more than 2 descents/],
    ["$[?match(@.a, '(?=a)')]", /linear time.*\(at character \d+\)/],
    ["$[?search(@.a, '(a)\\\\1')]", /linear time/],
    ["$[?match(@.a, 'a)|(b')]", /unbalanced parentheses \(at character \d+\)/],
    ["type", /must begin with \$/],
  ])("contains the reason and, if known, the position of the error: %s", (path, message) => {
    expect(messageOf(path)).toMatch(message);
  });

  it.each([
    "$.a[*].x^",
    "$.b.*~",
    "$.a.*@number()",
  ])("suggests the other path syntax if that syntax accepts %s", (path) => {
    expect(messageOf(path)).toMatch(/; the path is valid with pathSyntax "jsonpath-plus"$/);
    expect(messageOf(path, "jsonpath-plus")).toBe("compiles");
  });

  it.each([
    "$.a[",
    "$.a[?(@.b ==)]",
    "$..a..b..c",
  ])("suggests no other path syntax if neither syntax accepts %s", (path) => {
    expect(messageOf(path)).not.toMatch(/pathSyntax/);
  });
});

describe("the JSONPath function length()", () => {
  it("returns the number of characters, not of UTF-16 code units", () => {
    expect(select("$[?length(@) == 2]", ["😀😀", "abcd", [1, 2], { a: 1, b: 2 }])).toHaveLength(3);
  });
});
