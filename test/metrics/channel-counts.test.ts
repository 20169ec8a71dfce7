import { describe, expect, it } from "vitest";
import { createChannelCounter, OTHER } from "../../src/metrics/channel-counts.ts";

const name = (number: number) => ({ number, appId: "app_1", uid: `c${number}` });

function start(maxShown: number) {
  let nowMs = 0;
  const busiest = createChannelCounter({ maxShown, nowMs: () => nowMs });
  const shown = () =>
    Object.fromEntries(busiest.read().map(({ name, counts }) => [name.uid, counts.accepted]));
  return {
    busiest,
    shown,
    take(number: number, count = 1) {
      busiest.countsOf(name(number)).accepted += count;
    },
    /** Simulates a scrape that ranks the channels again. */
    electAndRead() {
      nowMs += 30_000;
      return shown();
    },
  };
}

describe("the per-channel delivery metric", () => {
  it("has a series for each of the first few channels, and one combined series for all later channels", () => {
    const { take, shown } = start(2);
    take(1, 3);
    take(2);
    take(3, 5);
    expect(shown()).toEqual({ c1: 3, c2: 1, [OTHER]: 5 });
    take(1);
    take(3);
    expect(shown()).toEqual({ c1: 4, c2: 1, [OTHER]: 6 });
  });

  it("counts each delivery exactly once, even if a channel moves from the combined series to its own series", () => {
    const { take, shown, electAndRead } = start(1);
    take(1, 2);
    expect(shown()).toEqual({ c1: 2, [OTHER]: 0 });
    take(1, 3);
    take(2, 100);
    // The counts of the replaced channel since the last scrape move to the others.
    expect(electAndRead()).toEqual({ c2: 0, [OTHER]: 103 });
    take(1, 7);
    take(2, 20);
    expect(shown()).toEqual({ c2: 20, [OTHER]: 110 });
  });

  it("replaces a channel's series only if another channel is much busier", () => {
    const { take, electAndRead } = start(1);
    take(1, 10);
    take(2, 12);
    expect(Object.keys(electAndRead())).toContain("c1");
    take(2, 40);
    expect(Object.keys(electAndRead())).toContain("c2");
  });

  it("limits both the number of channels with their own series and the number of channels in memory", () => {
    const { take, shown, electAndRead } = start(10);
    for (let number = 0; number < 25_000; number++) take(number);
    expect(Object.keys(shown())).toHaveLength(11);
    expect(shown()[OTHER]).toBe(24_990);
    // Idle channels are no longer counted individually.
    for (let i = 0; i < 3; i++) electAndRead();
    for (let round = 0; round < 3; round++) take(90_000 + round, 50);
    const after = electAndRead();
    expect([after.c90000, after.c90001, after.c90002]).toEqual([0, 0, 0]);
    expect(Object.keys(after)).toHaveLength(11);
  });

  it("has only the combined series if the maximum number of series is 0", () => {
    const { take, shown, electAndRead } = start(0);
    take(1, 4);
    expect(shown()).toEqual({ [OTHER]: 4 });
    take(1);
    expect(electAndRead()).toEqual({ [OTHER]: 5 });
  });
});
