import { expect, it } from "vitest";
import { loadOnce } from "../../src/lib/load-once.ts";

it("loads once for all callers, and again after a failure", async () => {
  const results = [
    Promise.reject(new Error("too many open files")),
    Promise.resolve("a"),
    Promise.resolve("b"),
  ];
  let calls = 0;
  const load = loadOnce(() => results[calls++] ?? Promise.resolve("none"));
  await expect(Promise.all([load(), load()])).rejects.toThrow("too many open files");
  expect(await Promise.all([load(), load()])).toEqual(["a", "a"]);
  expect(await load()).toBe("a");
  expect(calls).toBe(2);
});
