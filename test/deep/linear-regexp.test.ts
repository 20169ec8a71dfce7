import { expect, it } from "vitest";
import { compareRandomPatterns } from "../lib/regexp/random-patterns.ts";

it("the linear-time regular expressions match the same texts as JavaScript's, for 2,000 random patterns", () => {
  expect(() => compareRandomPatterns(2_000)).not.toThrow();
});
