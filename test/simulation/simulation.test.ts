import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describeDeep } from "../support/deep-run.ts";
import { opened } from "../support/opened.ts";
import { createTestRedis } from "../support/test-redis.ts";
import { runHistory } from "./history.ts";
import type { Breakage } from "./virtual-redis.ts";
import { installVirtualTime } from "./virtual-time.ts";

/** The first seeds that include each kind of fault. */
const HISTORIES = 12;

const redis = opened(createTestRedis);
let virtualTime: Disposable;
beforeAll(() => {
  virtualTime = installVirtualTime();
});
afterAll(() => virtualTime[Symbol.dispose]());

describe("polling sources on several workers, simulated with crashes, disconnects, stalls and clock jumps,", () => {
  it("have one owner at a time and lose, duplicate or delay no event in random runs", async () => {
    const faults = new Set<string>();
    for (let seed = 1; seed <= HISTORIES; seed++) {
      const result = await runHistory(seed, redis.client);
      expect(result).toMatchObject({ seed, violations: [] });
      for (const name of Object.keys(result.faults)) faults.add(name);
    }
    expect([...faults].sort()).toEqual(
      ["crash", "cut", "leave", "pause", "reject", "restart", "serverClock", "stall", "workerClock"].sort(),
    );
  });

  it("behave identically in two runs with the same seed", async () => {
    const [first, again] = [await runHistory(7, redis.client), await runHistory(7, redis.client)];
    expect(again).toEqual(first);
  });
});

/** Returns a breakage that replaces parts of the scripts, to remove one guarantee. */
const without =
  (...parts: readonly (readonly [text: string, replacement: string])[]): Breakage =>
  (script) =>
    parts.reduce((text, [part, replacement]) => text.replaceAll(part, replacement), script);

const SOON_MS = 5 * 60_000;

describeDeep("the simulation detects Redis scripts that", () => {
  it.each<[string, Breakage, RegExp, firstSeed: number]>([
    [
      "accept a write from a worker that no longer owns the source",
      without(
        ["if held and held > position.epoch then", "if false then"],
        ["if tonumber(held[1]) ~= position.epoch then", "if false then"],
      ),
      /was written under epoch \d+ after \d+ was taken/,
      9,
    ],
    [
      "accept a cursor write that is based on an outdated cursor",
      without(["if tonumber(held[2] or 0) ~= position.version then", "if false then"]),
      /holds \d/,
      10,
    ],
    [
      "do not assign a higher ownership number (epoch) when another worker takes over",
      without([
        "tonumber(held[1] or 0) + 1, highestEpoch(source, 2) + 1, now, minEpoch",
        "tonumber(held[1] or 1)",
      ]),
      /epoch \d+ is not new/,
      1,
    ],
    [
      "never expire a lease",
      without(["call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)", ""]),
      /events are missing/,
      2,
    ],
    [
      "extend a lease if the clock is set back",
      without(["'+inf')) do", "'-inf')) do"]),
      /events are missing/,
      60,
    ],
    [
      "extend the wait before the next poll if the clock is set back",
      without(["call('HSET', KEYS[1], field, string.format('%d', most))", ""]),
      /events are missing/,
      18,
    ],
    [
      "poll again before the configured interval has passed",
      without(["math.max(backoff, interval) > now", "backoff > now"]),
      /polled again/,
      1,
    ],
  ])("%s", async (_, breakage, violation, firstSeed) => {
    const found: string[] = [];
    // Starts at the first seed known to detect the breakage, to save time. Later seeds may detect it too.
    for (let seed = firstSeed; seed <= 200 && found.length === 0; seed++) {
      const { violations } = await runHistory(seed, redis.client, { breakage, recoveryMs: SOON_MS });
      if (violations.length === 0) continue;
      // Counts only if the unchanged scripts pass within the same short recovery time.
      const unchanged = await runHistory(seed, redis.client, { recoveryMs: SOON_MS });
      if (unchanged.violations.length === 0) found.push(...violations);
    }
    expect(found.join("\n")).toMatch(violation);
  });
});
