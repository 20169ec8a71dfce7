import { describe, expect, it } from "vitest";
import { createRateBuckets } from "../../src/lib/rate-buckets.ts";

/** How many of `asked` pass at that moment. */
const passed = (asked: number, take: () => number): number =>
  Array.from({ length: asked }, take).filter((waitMs) => waitMs === 0).length;

describe("a bucket", () => {
  it.each([1, 3, 7, 1_000])("holds a second's worth at %d a second, and fills at that rate", (rate) => {
    const buckets = createRateBuckets<string>();
    const take = (nowMs: number) => () => buckets.take("a", rate, nowMs);
    expect(passed(rate + 5, take(10_000))).toBe(rate);
    expect(passed(rate + 5, take(11_000))).toBe(rate);
    expect(passed(rate + 5, take(11_500))).toBe(Math.floor(rate / 2));
  });

  it("tells how long it is until the next one passes, and a refusal takes nothing", () => {
    const buckets = createRateBuckets<string>();
    for (let i = 0; i < 4; i++) expect(buckets.take("a", 4, 0)).toBe(0);
    for (let i = 0; i < 100; i++) expect(buckets.take("a", 4, 100)).toBeCloseTo(150);
    expect(buckets.take("a", 4, 250)).toBe(0);
  });

  it("is its key's alone", () => {
    const buckets = createRateBuckets<string>();
    expect(passed(3, () => buckets.take("a", 2, 0))).toBe(2);
    expect(passed(3, () => buckets.take("b", 2, 0))).toBe(2);
  });
});

describe("the buckets together", () => {
  it("hold a bounded number of keys, and those that are in use among them", () => {
    const buckets = createRateBuckets<number>(100);
    expect(passed(10, () => buckets.take(-1, 5, 0))).toBe(5);
    for (let key = 0; key < 10_000; key++) {
      buckets.take(key, 5, 0);
      if (key % 50 === 0) expect(buckets.take(-1, 5, 0)).toBeGreaterThan(0);
    }
  });

  it("cost a delivery less than a microsecond", () => {
    const buckets = createRateBuckets<string>();
    const keys = Array.from({ length: 1_000 }, (_, i) => `${i} 192.0.2.${i % 256}`);
    const rounds = 300_000;
    const run = (): number => {
      const startedAt = performance.now();
      for (let i = 0; i < rounds; i++) buckets.take(keys[i % keys.length] ?? "", 1e9, startedAt);
      return ((performance.now() - startedAt) * 1_000) / rounds;
    };
    run();
    expect(Math.min(run(), run(), run())).toBeLessThan(1);
  });
});
