import { expect, it } from "vitest";
import { memoizePerSecret } from "../../src/verify/memoize-per-secret.ts";

it("makes of each secret once what is asked for under the same list, and keeps lists apart", () => {
  const made: string[] = [];
  const lengthsOf = memoizePerSecret((secret) => {
    made.push(secret);
    return secret.length;
  });
  const first = ["a", "bb"];
  expect(lengthsOf(first)).toEqual([1, 2]);
  expect(lengthsOf(first)).toBe(lengthsOf(first));
  expect(lengthsOf(["ccc"])).toEqual([3]);
  expect(made).toEqual(["a", "bb", "ccc"]);
});
