import { expect, it } from "vitest";
import { FairBudget } from "../../src/limits/fairness.ts";

it("a fair budget gives a single holder at most half of the total", () => {
  const budget = new FairBudget<string>(100);
  expect(budget.take("a", 30)).toBe(true);
  expect(budget.take("a", 20)).toBe(true);
  expect(budget.take("a", 1)).toBe(false);
  budget.giveBack("a", 30);
  expect(budget.take("a", 30)).toBe(true);
});

it("a fair budget gives a new holder an equal share, even if earlier holders have taken everything", () => {
  const budget = new FairBudget<string>(100);
  for (const holder of ["a", "b"])
    expect([budget.take(holder, 1), budget.take(holder, 49)]).toEqual([true, true]);
  expect(budget.take("c", 1)).toBe(true);
  expect(budget.take("c", 32)).toBe(true);
  expect(budget.take("c", 1)).toBe(false);
  // More is available again after other holders release their part.
  budget.giveBack("a", 50);
  expect(budget.take("c", 10)).toBe(true);
});

it("a fair budget accepts a first request of any size from each holder", () => {
  const budget = new FairBudget<string>(100);
  expect(budget.take("a", 1_000)).toBe(true);
  expect(budget.take("a", 1)).toBe(false);
  expect(budget.take("b", 300)).toBe(true);
  budget.giveBack("a", 1_000);
  budget.giveBack("b", 300);
  expect([budget.take("a", 25), budget.take("a", 25)]).toEqual([true, true]);
});

it("a fair budget applies a holder's configured limit instead of half of the total, and still serves other holders", () => {
  const limits = new Map([
    ["small", 10],
    ["large", 90],
  ]);
  const budget = new FairBudget<string>(100, (holder) => limits.get(holder));
  expect([budget.take("small", 8), budget.take("small", 3), budget.take("small", 2)]).toEqual([
    true,
    false,
    true,
  ]);
  expect([budget.take("large", 60), budget.take("large", 20), budget.take("large", 20)]).toEqual([
    true,
    true,
    false,
  ]);
  expect([budget.take("usual", 1), budget.take("usual", 30)]).toEqual([true, true]);
  budget.giveBack("small", 5);
  expect([budget.take("small", 6), budget.take("small", 5)]).toEqual([false, true]);
});
