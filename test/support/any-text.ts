import fc from "fast-check";

/** Generates any code points, including lone surrogates. fast-check's `unit: "binary"` first maps all of Unicode, which takes seconds. */
export const anyText = (maxLength: number): fc.Arbitrary<string> =>
  fc.array(fc.nat(0x10ffff), { maxLength }).map((codes) => String.fromCodePoint(...codes));
