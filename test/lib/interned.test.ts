import { describe, expect, it } from "vitest";
import { createInterned } from "../../src/lib/interned.ts";

describe("values that are made once", () => {
  it("are shared by all who ask under the same key", () => {
    const interned = createInterned<{ readonly n: number }>();
    let made = 0;
    const make = () => ({ n: ++made });
    const first = interned("a", make);
    expect(interned("a", make)).toBe(first);
    expect(interned("b", make)).not.toBe(first);
    expect(made).toBe(2);
  });

  it("are not kept where making one fails", () => {
    const interned = createInterned<{ readonly n: number }>();
    const fail = (): never => {
      throw new Error("not now");
    };
    expect(() => interned("a", fail)).toThrow("not now");
    expect(interned("a", () => ({ n: 1 }))).toEqual({ n: 1 });
  });
});
