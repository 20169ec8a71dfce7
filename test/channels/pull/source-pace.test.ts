import { describe, expect, it } from "vitest";
import { createSourcePace } from "../../../src/channels/pull/source-pace.ts";
import type { Sleep } from "../../../src/lib/sleep.ts";

const { signal } = new AbortController();

/** Creates a pace whose clock advances only while something sleeps. */
function paced(deliveriesPerSecond: number) {
  let nowMs = 1_000_000;
  const sleep: Sleep = async (ms) => {
    nowMs += ms;
  };
  const startedAtMs = nowMs;
  const pace = createSourcePace({
    deliveriesPerSecondOf: () => deliveriesPerSecond,
    nowMs: () => nowMs,
    sleep,
  });
  return { pace, elapsedMs: () => nowMs - startedAtMs };
}

describe("the rate limiter for the pull sources of an organization", () => {
  it("accepts the deliveries of one second at once, and delays further deliveries to the configured rate", async () => {
    const { pace, elapsedMs } = paced(100);
    const order: number[] = [];
    await Promise.all(
      Array.from({ length: 500 }, async (_, i) => {
        await pace.wait("org_1", { signal });
        order.push(i);
      }),
    );
    expect(order).toEqual(Array.from({ length: 500 }, (_, i) => i));
    expect(elapsedMs()).toBeGreaterThanOrEqual(3_990);
    expect(elapsedMs()).toBeLessThan(4_100);
  });

  it("counts each delivery of a batch, and limits the batch size to a quarter of the deliveries per second", async () => {
    const { pace, elapsedMs } = paced(100);
    expect(pace.maxBatchSize("org_1")).toBe(25);
    for (let sent = 0; sent < 500; sent += 25) await pace.wait("org_1", { signal, count: 25 });
    expect(elapsedMs()).toBeGreaterThanOrEqual(3_990);
    expect(elapsedMs()).toBeLessThan(4_100);
    expect(paced(2).pace.maxBatchSize("org_1")).toBe(1);
  });

  it("counts all items of a delivery even above the limit, and delays the next deliveries accordingly", async () => {
    const { pace, elapsedMs } = paced(100);
    await pace.wait("org_1", { signal });
    pace.overdraw("org_1", 999);
    expect(elapsedMs()).toBe(0);
    expect(pace.wait("org_2", { signal })).toBeUndefined();
    await pace.wait("org_1", { signal });
    expect(elapsedMs()).toBeGreaterThanOrEqual(9_000);
    expect(elapsedMs()).toBeLessThan(9_100);
  });

  it("does not delay other organizations", async () => {
    const { pace } = paced(10);
    const floods = Array.from({ length: 1_000 }, () => pace.wait("org_flood", { signal }));
    for (let i = 0; i < 10; i++) expect(pace.wait("org_small", { signal })).toBeUndefined();
    await Promise.all(floods);
  });

  it("rejects a waiting delivery as soon as its run is aborted, even if earlier deliveries still wait", async () => {
    const pace = createSourcePace({
      deliveriesPerSecondOf: () => 1,
      nowMs: () => 1_000,
      sleep: () => new Promise(() => {}),
    });
    const ending = new AbortController();
    await pace.wait("org_1", { signal });
    void pace.wait("org_1", { signal });
    const ended = pace.wait("org_1", { signal: ending.signal });
    ending.abort(new Error("the run ends"));
    await expect(ended).rejects.toThrow("the run ends");
  });

  it("rejects the waiting deliveries of an aborted run, but not the deliveries of other runs", async () => {
    const never: Sleep = (_, { aborted }) => (aborted ? Promise.resolve() : new Promise(() => {}));
    const ending = new AbortController();
    let nowMs = 1_000;
    const sleep: Sleep = (ms, given) =>
      given === ending.signal
        ? new Promise((resolve) => given.addEventListener("abort", () => resolve(), { once: true }))
        : never(ms, given);
    const pace = createSourcePace({ deliveriesPerSecondOf: () => 1, nowMs: () => nowMs, sleep });
    await pace.wait("org_1", { signal });
    const ended = pace.wait("org_1", { signal: ending.signal });
    const behind = pace.wait("org_1", { signal });
    nowMs += 1_000;
    ending.abort(new Error("the run ends"));
    await expect(ended).rejects.toThrow("the run ends");
    await behind;
  });
});
