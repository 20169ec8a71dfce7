import { expect, it } from "vitest";
import { createByteBudget } from "../../src/lib/byte-budget.ts";

const { signal } = new AbortController();
const turn = () => new Promise((resolve) => setImmediate(resolve));

it("bytes are given in the order in which they were asked for", async () => {
  const budget = createByteBudget(100);
  const got: string[] = [];
  const take = async (name: string, bytes: number) => {
    const giveBack = await budget.take(bytes, { signal });
    got.push(name);
    return giveBack;
  };
  const [first, second] = await Promise.all([take("a", 60), take("b", 40)]);
  const large = take("large", 80);
  // It would fit, but the large one came first.
  const small = take("small", 10);
  first();
  first();
  await turn();
  expect(got).toEqual(["a", "b"]);
  second();
  await Promise.all([large, small]);
  expect(got).toEqual(["a", "b", "large", "small"]);
});

it("a request larger than the whole budget is met once all bytes are back", async () => {
  const budget = createByteBudget(100);
  const some = await budget.take(1, { signal });
  const huge = budget.take(1_000, { signal });
  const behind = budget.take(1, { signal });
  some();
  (await huge)();
  (await behind)();
});

it("a request that is aborted lets the next ones pass", async () => {
  const budget = createByteBudget(100);
  const some = await budget.take(50, { signal });
  const leaving = new AbortController();
  const large = budget.take(80, { signal: leaving.signal });
  const small = budget.take(20, { signal });
  leaving.abort(new Error("no longer"));
  await expect(large).rejects.toThrow("no longer");
  await small;
  some();
  await expect(budget.take(1, { signal: leaving.signal })).rejects.toThrow("no longer");
});
