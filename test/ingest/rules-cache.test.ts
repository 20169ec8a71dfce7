import { beforeEach, describe, expect, it } from "vitest";
import type { CompiledChannel, SharedPart } from "../../src/ingest/compile-channel.ts";
import { createRulesCache, type RulesCache } from "../../src/ingest/rules-cache.ts";
import { UnavailableError } from "../../src/lib/errors.ts";

const channel = (number: number, shares: readonly SharedPart[] = []) =>
  ({ identity: { number }, shares }) as unknown as CompiledChannel;

/** Room for about ten channels that share all compiled parts. */
const MAX_BYTES = 10_000;

let lookUps: string[];
let stored: Map<string, CompiledChannel>;
let feedStalenessMs: number;
/** Delays the results of lookups. */
let held: Promise<void>;
let failing: boolean;
let cache: RulesCache;
beforeEach(() => {
  lookUps = [];
  stored = new Map([["ch_1", channel(1)]]);
  feedStalenessMs = 0;
  held = Promise.resolve();
  failing = false;
  cache = createRulesCache({
    isChannelId: (id) => id.startsWith("ch_"),
    async load(id) {
      lookUps.push(id);
      const read = stored.get(id);
      await held;
      if (failing) throw new UnavailableError("PostgreSQL is away");
      return read && { channel: read, leftMs: undefined };
    },
    feedStalenessMs: () => feedStalenessMs,
    lookUpTimeoutMs: 50,
    maxBytes: MAX_BYTES,
  });
});

describe("the cache of channel rules", () => {
  it("returns undefined for a malformed channel id without a database lookup", () => {
    expect(cache.find("invented")).toBeUndefined();
    expect(lookUps).toEqual([]);
  });

  it("looks up a channel once for concurrent callers, then returns it from memory", async () => {
    const found = await Promise.all(Array.from({ length: 20 }, () => cache.find("ch_1")));
    expect(new Set(found)).toEqual(new Set([stored.get("ch_1")]));
    expect(cache.find("ch_1")).toBe(stored.get("ch_1"));
    expect(lookUps).toEqual(["ch_1"]);
  });

  it("looks up an unknown channel id only once", async () => {
    expect(await cache.find("ch_gone")).toBeUndefined();
    expect(cache.find("ch_gone")).toBeUndefined();
    expect(lookUps).toEqual(["ch_gone"]);
  });

  it("looks up a channel again after a failed lookup", async () => {
    failing = true;
    await expect(cache.find("ch_1")).rejects.toThrow(UnavailableError);
    failing = false;
    expect(await cache.find("ch_1")).toBe(stored.get("ch_1"));
  });

  it("rejects a request whose database lookup is slow, and uses the result of that lookup for later requests", async () => {
    let release = () => {};
    held = new Promise((resolve) => {
      release = resolve;
    });
    await expect(cache.find("ch_1")).rejects.toThrow(UnavailableError);
    const second = cache.find("ch_1");
    release();
    expect(await second).toBe(stored.get("ch_1"));
    expect(lookUps).toEqual(["ch_1"]);
  });

  it("removes only the changed channel, by its internal channel id", async () => {
    stored.set("ch_2", channel(2));
    const second = await cache.find("ch_2");
    await cache.find("ch_1");
    const mended = channel(1);
    stored.set("ch_1", mended);
    cache.drop(1);
    expect(await cache.find("ch_1")).toBe(mended);
    expect(cache.find("ch_2")).toBe(second);
    cache.clear();
    expect(cache.find("ch_2")).toBeInstanceOf(Promise);
  });

  it("keeps the most recently used channels that fit into the memory limit", async () => {
    const ids = Array.from({ length: 50 }, (_, index) => `ch_${index}`);
    for (const [number, id] of ids.entries()) {
      stored.set(id, channel(number));
      await cache.find(id);
    }
    expect(cache.find("ch_49")).toBe(stored.get("ch_49"));
    const kept = ids.filter((id) => !(cache.find(id) instanceof Promise));
    expect(kept.length).toBeGreaterThan(2);
    expect(kept.length).toBeLessThan(20);
    expect(kept).toEqual(ids.slice(-kept.length));
  });

  it("counts memory that several cached channels share only once", async () => {
    const isKept = (id: string) => !(cache.find(id) instanceof Promise);
    const shared = { bytes: 5_000 };
    for (const [number, id] of ["ch_1", "ch_2", "ch_3"].entries()) {
      stored.set(id, channel(number, [shared]));
      await cache.find(id);
    }
    expect(["ch_1", "ch_2", "ch_3"].filter(isKept)).toEqual(["ch_1", "ch_2", "ch_3"]);
    // The cache has no room for both.
    stored.set("ch_4", channel(4, [{ bytes: 5_000 }]));
    await cache.find("ch_4");
    expect(["ch_1", "ch_2", "ch_3", "ch_4"].filter(isKept)).toEqual(["ch_4"]);
    cache.drop(4);
    for (const id of ["ch_1", "ch_2", "ch_3"]) await cache.find(id);
    expect(["ch_1", "ch_2", "ch_3"].filter(isKept)).toEqual(["ch_1", "ch_2", "ch_3"]);
  });

  it("caches a single channel even if it exceeds the memory limit", async () => {
    stored.set("ch_2", channel(2, [{ bytes: 10 * MAX_BYTES }]));
    await cache.find("ch_1");
    await cache.find("ch_2");
    expect(cache.find("ch_2")).toBe(stored.get("ch_2"));
    expect(cache.find("ch_1")).toBeInstanceOf(Promise);
  });

  it("looks up a channel again if the channel changes during the lookup", async () => {
    let release = () => {};
    held = new Promise((resolve) => {
      release = resolve;
    });
    const early = cache.find("ch_1");
    const mended = channel(1);
    stored.set("ch_1", mended);
    cache.drop(1);
    const late = cache.find("ch_1");
    release();
    await early;
    expect(await late).toBe(mended);
    expect(cache.find("ch_1")).toBe(mended);
  });

  it("serves cached channels for ten minutes while the database change feed is unavailable, then throws UnavailableError", async () => {
    await cache.find("ch_1");
    feedStalenessMs = 600_000;
    expect(cache.find("ch_1")).toBe(stored.get("ch_1"));
    feedStalenessMs = 600_001;
    expect(() => cache.find("ch_1")).toThrow(UnavailableError);
    expect(() => cache.find("ch_unknown")).toThrow(UnavailableError);
    expect(cache.find("invented")).toBeUndefined();
    expect(lookUps).toEqual(["ch_1"]);
    feedStalenessMs = 0;
    expect(cache.find("ch_1")).toBe(stored.get("ch_1"));
  });
});
