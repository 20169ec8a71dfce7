import { describe, expect, it } from "vitest";
import { atEndOfTurn } from "../../src/lib/at-end-of-turn.ts";

const endOfTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("atEndOfTurn", () => {
  it("processes each item once, in order, at the end of the event loop turn", async () => {
    const done: number[] = [];
    const take = atEndOfTurn((one: number) => done.push(one));
    expect(take.isEmpty()).toBe(true);
    take(1);
    await Promise.resolve();
    take(2);
    expect([done, take.isEmpty()]).toEqual([[], false]);
    await endOfTurn();
    expect([done, take.isEmpty()]).toEqual([[1, 2], true]);
    take(3);
    await endOfTurn();
    expect(done).toEqual([1, 2, 3]);
  });

  it("defers items that are added during processing to the next turn", async () => {
    const done: number[] = [];
    const take = atEndOfTurn((one: number) => {
      done.push(one);
      if (one < 3) take(one + 1);
    });
    take(1);
    await endOfTurn();
    expect(done).toEqual([1]);
    await endOfTurn();
    expect(done).toEqual([1, 2]);
    await endOfTurn();
    expect(done).toEqual([1, 2, 3]);
  });
});
