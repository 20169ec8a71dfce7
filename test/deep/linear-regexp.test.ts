import { expect, it } from "vitest";
import { compareRandomPatterns } from "../lib/regexp/random-patterns.ts";

it("2,000 random patterns accept the same texts as JavaScript's own regular expressions", () => {
  expect(() => compareRandomPatterns(2_000)).not.toThrow();
});
