import { describe, expect, it } from "vitest";
import { TokenBuckets } from "../../src/limits/token-buckets.ts";

/** Returns how many of the attempts get a token without waiting. */
const countPassed = (attempts: number, take: () => number): number =>
  Array.from({ length: attempts }, take).filter((waitMs) => waitMs === 0).length;

describe("a token bucket", () => {
  it.each([
    1, 3, 7, 1_000,
  ])("with a rate of %d per second holds the tokens of one second, and refills at that rate", (rate) => {
    const buckets = new TokenBuckets<string>();
    const take = (nowMs: number) => () => buckets.take("a", rate, nowMs);
    expect(countPassed(rate + 5, take(10_000))).toBe(rate);
    expect(countPassed(rate + 5, take(11_000))).toBe(rate);
    expect(countPassed(rate + 5, take(11_500))).toBe(Math.floor(rate / 2));
  });

  it("rejects a request with the time until the next token, and rejected requests consume no tokens", () => {
    const buckets = new TokenBuckets<string>();
    for (let i = 0; i < 4; i++) expect(buckets.take("a", 4, 0)).toBe(0);
    for (let i = 0; i < 100; i++) expect(buckets.take("a", 4, 100)).toBeCloseTo(150);
    expect(buckets.take("a", 4, 250)).toBe(0);
  });

  it("returns the time until the next token without consuming a token if it is only read", () => {
    const buckets = new TokenBuckets<string>();
    for (let i = 0; i < 3; i++) expect(buckets.look("a", 2, 0)).toBe(0);
    expect(countPassed(3, () => buckets.take("a", 2, 0))).toBe(2);
    for (let i = 0; i < 3; i++) expect(buckets.look("a", 2, 100)).toBeCloseTo(400);
    expect([buckets.look("a", 2, 500), buckets.take("a", 2, 500)]).toEqual([0, 0]);
  });

  it("limits a debt, so that requests are accepted again after the maximum time", () => {
    const buckets = new TokenBuckets<string>({ maxDebtMs: 500 });
    buckets.overdraw("a", 1_000_000, 10, 0);
    expect(buckets.look("a", 10, 0)).toBe(600);
    buckets.countElsewhere("a", 1_000_000, 10, 0);
    expect(buckets.look("a", 10, 0)).toBe(600);
    expect(buckets.look("a", 10, 600)).toBe(0);
  });

  it("rejects requests after an overdraft until exactly the time when refilling has repaid the debt", () => {
    const buckets = new TokenBuckets<string>();
    expect(buckets.take("a", 10, 0)).toBe(0);
    buckets.overdraw("a", 29, 10, 0);
    expect(buckets.take("a", 10, 1_000)).toBeCloseTo(1_100);
    expect(countPassed(3, () => buckets.take("a", 10, 2_100))).toBe(1);
    expect(countPassed(20, () => buckets.take("a", 10, 10_000))).toBe(10);
  });

  it("is independent of the buckets of other keys", () => {
    const buckets = new TokenBuckets<string>();
    expect(countPassed(3, () => buckets.take("a", 2, 0))).toBe(2);
    expect(countPassed(3, () => buckets.take("b", 2, 0))).toBe(2);
  });
});

describe("the set of token buckets", () => {
  it("drops an unused key after twice the maximum number of other keys was used", () => {
    const buckets = new TokenBuckets<number>({ maxKeys: 100 });
    expect(countPassed(10, () => buckets.take(-1, 5, 0))).toBe(5);
    for (let key = 0; key < 200; key++) buckets.take(key, 5, 0);
    expect(countPassed(10, () => buckets.take(-1, 5, 0))).toBe(5);
  });

  it("keeps a key in use, even if thousands of other keys are used", () => {
    const buckets = new TokenBuckets<number>({ maxKeys: 100 });
    expect(countPassed(10, () => buckets.take(-1, 5, 0))).toBe(5);
    for (let key = 0; key < 10_000; key++) {
      buckets.take(key, 5, 0);
      if (key % 50 === 0) expect(buckets.take(-1, 5, 0)).toBeGreaterThan(0);
    }
  });
});
