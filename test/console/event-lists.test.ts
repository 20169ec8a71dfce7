import { describe, expect, it } from "vitest";
import { parseFieldFilter } from "../../src/console/views/events/field-filter.ts";
import { createTimeline, type Event, type Load } from "../../src/console/views/events/timeline.ts";

describe("the console's list of events", () => {
  /** Simulates the API: events in order of time. With a time range, it counts and pages only the first 10,000. */
  function listOf(timesMs: readonly number[]): { readonly load: Load; readonly asked: () => number } {
    const events = timesMs.map((ms, n): Event => {
      return { id: `e${n}`, type: "t", source: "/s", topic: "topic", entryId: `${ms}-${n}` };
    });
    let asked = 0;
    return {
      asked: () => asked,
      async load({ from, to, limit, offset }) {
        asked++;
        expect(limit + offset).toBeLessThanOrEqual(10_000);
        const [fromMs, toMs] = [from, to].map((text) => (text === undefined ? undefined : Date.parse(text)));
        const fitting = events.filter((_, n) => {
          const ms = timesMs[n] ?? 0;
          return (fromMs === undefined || ms >= fromMs) && (toMs === undefined || ms < toMs);
        });
        const isWhole = from === undefined && to === undefined;
        return {
          rows: fitting.slice(offset, offset + limit),
          total: isWhole ? fitting.length : Math.min(10_000, fitting.length),
        };
      },
    };
  }

  const idsAt = async (load: Load, offset: number, range = {}): Promise<readonly string[]> => {
    const page = { limit: 100, offset };
    const { rows } = await createTimeline(load, range)(page, new AbortController().signal);
    return rows.map(({ id }) => id);
  };

  const nowMs = Date.now();
  const spread = (count: number, spanMs: number): readonly number[] =>
    Array.from({ length: count }, (_, n) => nowMs - spanMs + Math.floor((spanMs * n * n) / (count * count)));

  it("returns events from newest to oldest", async () => {
    const { load } = listOf(spread(250, 60_000));
    expect((await idsAt(load, 0)).slice(0, 2)).toEqual(["e249", "e248"]);
    expect((await idsAt(load, 200)).at(-1)).toBe("e0");
    expect(await idsAt(load, 300)).toEqual([]);
  });

  it("reaches every offset, even beyond the API's offset limit and when events are unevenly distributed over time", async () => {
    const burst = [...spread(20_000, 86_400_000), ...Array.from({ length: 9_000 }, () => nowMs + 5_000)];
    const { load } = listOf(burst);
    for (const offset of [0, 8_950, 9_000, 17_300, 28_900]) {
      const expected = Array.from({ length: 100 }, (_, n) => `e${burst.length - 1 - offset - n}`);
      expect([offset, await idsAt(load, offset)]).toEqual([offset, expected]);
    }
  });

  it("returns the total count of 30,000 events with the first page, in fewer than 10 requests", async () => {
    const { load, asked } = listOf(spread(30_000, 86_400_000));
    const read = createTimeline(load, {});
    const { total } = await read({ limit: 100, offset: 0 }, new AbortController().signal);
    expect(total).toBe(30_000);
    expect(asked()).toBeLessThan(10);
  });

  it("contains only events of the selected time range, from its first to its last page", async () => {
    const times = spread(25_000, 86_400_000);
    const { load } = listOf(times);
    const range = { to: new Date(nowMs - 1_000).toISOString() };
    const count = times.filter((ms) => ms < nowMs - 1_000).length;
    const read = createTimeline(load, range);
    const { signal } = new AbortController();
    const last = await read({ limit: 100, offset: count - 100 }, signal);
    expect(last.rows.at(-1)?.id).toBe("e0");
    expect((await read({ limit: 100, offset: 0 }, signal)).rows[0]?.id).toBe(`e${count - 1}`);
  });
});

it("the field filter of the console matches events by a path into their data, with or without a value", () => {
  const data = { order: { total: 12, note: "a = b", items: [{ sku: "x" }], none: null } };
  const found = ["order.total = 12", "$.order.total=12", "order.items.0.sku = x", 'order.items.0.sku = "x"'];
  const others = ["order.total = 13", "order.total.x", "toString", "order.items.1", "order.note = a"];
  for (const text of [...found, "order.note = a = b", "order.none = null", "order.none"])
    expect([text, parseFieldFilter(text)?.(data)]).toEqual([text, true]);
  for (const text of others) expect([text, parseFieldFilter(text)?.(data)]).toEqual([text, false]);
  expect(parseFieldFilter(" = 12")).toBeUndefined();
});
