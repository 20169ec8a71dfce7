import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { opened } from "../support/opened.ts";
import { createTestRedis } from "../support/test-redis.ts";
import { runHistory } from "./history.ts";
import type { Breakage } from "./virtual-redis.ts";
import { installVirtualTime } from "./virtual-time.ts";

const redis = opened(createTestRedis);
let virtualTime: Disposable;
beforeAll(() => {
  virtualTime = installVirtualTime();
});
afterAll(() => virtualTime[Symbol.dispose]());

describe("sources on several workers, through crashes, pauses, cuts, stalls and clocks that jump", () => {
  it("have one owner an epoch, and nothing is lost, doubled or held up, in 200 histories", async () => {
    const faults = new Set<string>();
    for (let seed = 1; seed <= 200; seed++) {
      const told = await runHistory(seed, redis.client);
      expect(told).toMatchObject({ seed, violations: [] });
      for (const name of Object.keys(told.faults)) faults.add(name);
    }
    expect([...faults].sort()).toEqual(
      ["crash", "cut", "leave", "pause", "refuse", "restart", "serverClock", "stall", "workerClock"].sort(),
    );
  });

  it("do the same thing again by the same seed", async () => {
    const [first, again] = [await runHistory(7, redis.client), await runHistory(7, redis.client)];
    expect(again).toEqual(first);
  });
});

/** Takes a promise out of the shipped scripts. */
const without =
  (...parts: readonly (readonly [text: string, instead: string])[]): Breakage =>
  (script) =>
    parts.reduce((text, [part, instead]) => text.replaceAll(part, instead), script);

const SOON_MS = 5 * 60_000;

describe("a promise that is taken out of the scripts is missed:", () => {
  it.each<[string, Breakage, RegExp, firstSeed: number]>([
    [
      "the epoch of a write is looked at",
      without(
        ["if held and held > position.epoch then", "if false then"],
        ["if tonumber(held[1]) ~= position.epoch then", "if false then"],
      ),
      /came under epoch \d+ after \d+ was taken/,
      9,
    ],
    [
      "the version of a cursor is compared",
      without(["if tonumber(held[2] or 0) ~= position.version then", "if false then"]),
      /holds \d/,
      10,
    ],
    [
      "who takes a source over has a new epoch",
      without([
        "tonumber(held[1] or 0) + 1, highestEpoch(source, 2) + 1, now, least",
        "tonumber(held[1] or 1)",
      ]),
      /epoch \d+ is not new/,
      1,
    ],
    [
      "a lease ends",
      without(["call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)", ""]),
      /events are missing/,
      2,
    ],
    [
      "a lease is not prolonged by a clock that is set back",
      without(["'+inf')) do", "'-inf')) do"]),
      /events are missing/,
      60,
    ],
    [
      "a wait is not prolonged by a clock that is set back",
      without(["call('HSET', KEYS[1], field, string.format('%d', most))", ""]),
      /events are missing/,
      18,
    ],
    [
      "polls keep their distance",
      without(["math.max(backoff, interval) > now", "backoff > now"]),
      /polled again/,
      1,
    ],
  ])("%s", async (_, breakage, violation, firstSeed) => {
    const found: string[] = [];
    // Those before are known to show nothing, and any of 200 will do.
    for (let seed = firstSeed; seed <= 200 && found.length === 0; seed++) {
      const { violations } = await runHistory(seed, redis.client, { breakage, healingMs: SOON_MS });
      if (violations.length === 0) continue;
      // It counts where all is well as soon by the shipped scripts: then what is missing need not be waited for any longer.
      const whole = await runHistory(seed, redis.client, { healingMs: SOON_MS });
      if (whole.violations.length === 0) found.push(...violations);
    }
    expect(found.join("\n")).toMatch(violation);
  });
});
