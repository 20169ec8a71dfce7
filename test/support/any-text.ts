import fc from "fast-check";

/** Any code points, half of a pair as well; `unit: "binary"` of fast-check maps all of Unicode first, which takes seconds. */
export const anyText = (maxLength: number): fc.Arbitrary<string> =>
  fc.array(fc.nat(0x10ffff), { maxLength }).map((codes) => String.fromCodePoint(...codes));
