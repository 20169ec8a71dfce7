import { describe, expect, it } from "vitest";
import { compile, messageOf, select } from "./support.ts";

describe("a path in the syntax of jsonpath-plus", () => {
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
  ])("selects the expected values: %s", (path, expected) => {
    expect([...select(path, data, "jsonpath-plus")].sort()).toEqual([...expected].sort());
  });

  it("has locations for the values that it selects, but not for member names", () => {
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
  ])("is rejected: %s", (path) => {
    expect(compile(path, "jsonpath-plus").ok).toBe(false);
  });

  it.each([
    ["$.a[?(@.x == 'y')]", 4],
    ['$.a[?(@.x == "y]")].z', 4],
    ["$['n[?']..[?(@.x=='y')]", 11],
    ["$.a[(@['length']-1)]", 4],
  ])("is rejected with the position of its filter: %s", (path, at) => {
    expect(messageOf(path, "jsonpath-plus")).toBe(
      `filters and scripts are not allowed: ${path.slice(at - 1)} (at character ${at})`,
    );
  });
});
