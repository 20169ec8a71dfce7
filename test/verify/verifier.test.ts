import { expect, it } from "vitest";
import { memoizePerSecret } from "../../src/verify/verifier.ts";

it("memoizePerSecret computes values once per list of secrets, and does not share them with other lists", () => {
  const derived: string[] = [];
  const getLengths = memoizePerSecret((secret) => {
    derived.push(secret);
    return secret.length;
  });
  const first = ["a", "bb"];
  expect(getLengths(first)).toEqual([1, 2]);
  expect(getLengths(first)).toBe(getLengths(first));
  expect(getLengths(["ccc"])).toEqual([3]);
  expect(derived).toEqual(["a", "bb", "ccc"]);
});
