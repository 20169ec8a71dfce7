import { describe, expect, it } from "vitest";
import { atEndOfTurn } from "../../src/ingest/at-end-of-turn.ts";

const endOfTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("atEndOfTurn", () => {
  it("processes the added items once, in order, at the end of the current event loop iteration", async () => {
    const processed: number[] = [];
    const defer = atEndOfTurn((item: number) => processed.push(item));
    expect(defer.isEmpty()).toBe(true);
    defer(1);
    await Promise.resolve();
    defer(2);
    expect([processed, defer.isEmpty()]).toEqual([[], false]);
    await endOfTurn();
    expect([processed, defer.isEmpty()]).toEqual([[1, 2], true]);
    defer(3);
    await endOfTurn();
    expect(processed).toEqual([1, 2, 3]);
  });

  it("processes items that are added during processing in the next event loop iteration", async () => {
    const processed: number[] = [];
    const defer = atEndOfTurn((item: number) => {
      processed.push(item);
      if (item < 3) defer(item + 1);
    });
    defer(1);
    await endOfTurn();
    expect(processed).toEqual([1]);
    await endOfTurn();
    expect(processed).toEqual([1, 2]);
    await endOfTurn();
    expect(processed).toEqual([1, 2, 3]);
  });
});
