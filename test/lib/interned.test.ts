import { describe, expect, it } from "vitest";
import { createInterned, createSharedParts } from "../../src/lib/interned.ts";

describe("createInterned", () => {
  it("returns the same object to all callers with the same key", () => {
    const interned = createInterned<{ readonly n: number }>();
    let created = 0;
    const create = () => ({ n: ++created });
    const first = interned("a", create);
    expect(interned("a", create)).toBe(first);
    expect(interned("b", create)).not.toBe(first);
    expect(created).toBe(2);
  });

  it("caches nothing if the creation of a value fails", () => {
    const interned = createInterned<{ readonly n: number }>();
    const fail = (): never => {
      throw new Error("not now");
    };
    expect(() => interned("a", fail)).toThrow("not now");
    expect(interned("a", () => ({ n: 1 }))).toEqual({ n: 1 });
  });
});

it("createSharedParts reuses equal parts of different objects, and returns the length of each object's unshared parts", () => {
  const share = createSharedParts();
  const first = share({ url: "a", list: [1], deep: { b: null } });
  const second = share({ url: "bc", list: [1], deep: { b: 1 } });
  expect(second.whole).toEqual({ url: "bc", list: [1], deep: { b: 1 } });
  expect(second.whole.list).toBe(first.whole.list);
  expect(second.whole.deep).not.toBe(first.whole.deep);
  expect(first.ownLength).toBe("a".length + "[1]".length + '{"b":null}'.length);
  expect(second.ownLength).toBe("bc".length + '{"b":1}'.length);
});

it("createSharedParts does not reuse long parts, because its cache would retain them", () => {
  const share = createSharedParts();
  const shareAgain = () => share({ short: ["a".repeat(500)], long: ["a".repeat(5_000)] });
  const [first, second] = [shareAgain(), shareAgain()];
  expect(second.whole).toEqual(first.whole);
  expect(second.whole.short).toBe(first.whole.short);
  expect(second.whole.long).not.toBe(first.whole.long);
  expect(second.ownLength).toBe(5_000 + '[""]'.length);
});
