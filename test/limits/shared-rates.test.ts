import { describe, expect, it } from "vitest";
import { createSharedRates, type SharedRates, type TakenTokens } from "../../src/limits/shared-rates.ts";

const FLUSH_MS = 20;

/** Creates processes whose messages arrive at the next flush. */
function createMachine(processes: number) {
  let nowMs = 0;
  const mail: { readonly from: number; readonly taken: readonly TakenTokens[] }[] = [];
  const all: readonly SharedRates[] = Array.from({ length: processes }, (_, from) =>
    createSharedRates({ send: (taken) => mail.push({ from, taken }), nowMs: () => nowMs }),
  );
  const buckets = all.map((rates) => rates.buckets<string>("test"));
  return {
    mail,
    /** Offers this many deliveries per ms, round-robin over the processes. Returns the number of accepted deliveries. */
    run(
      ms: number,
      perMs: number,
      perSecond: number,
      use: (turn: number) => number = (turn) => turn,
    ): number {
      let accepted = 0;
      let turn = 0;
      for (let i = 0; i < ms; i++, nowMs++) {
        for (let n = 0; n < perMs; n++)
          if (buckets[use(turn++) % processes]?.take("k", perSecond, nowMs) === 0) accepted++;
        if (nowMs % FLUSH_MS !== 0) continue;
        for (const rates of all) rates.flush();
        for (const { from, taken } of mail.splice(0))
          for (const [to, rates] of all.entries()) if (to !== from) rates.receive(taken);
      }
      return accepted;
    },
  };
}

describe("a rate that the processes of a machine share", () => {
  it.each([1, 2, 16])("accepts the same in the long term with %i processes under a flood", (processes) => {
    // A burst of one second, and 100 in each of 10 seconds. Each process may take a token at the same time as the others.
    const accepted = createMachine(processes).run(10_000, 5, 100);
    expect(accepted).toBeGreaterThanOrEqual(1_090);
    expect(accepted).toBeLessThanOrEqual(1_100 + processes);
  });

  it("lets a sender with one connection use the whole rate", () => {
    expect(createMachine(16).run(10_000, 5, 100, () => 0)).toBeGreaterThanOrEqual(1_099);
  });

  it("sends nothing for takes that hardly change a bucket", () => {
    const machine = createMachine(2);
    expect(machine.run(1_000, 5, 1_000_000_000)).toBe(5_000);
    expect(machine.mail).toEqual([]);
  });
});
