import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { Budget } from "../../src/limits/budgets.ts";
import { FairBudget } from "../../src/limits/fairness.ts";
import { createLeasedBudgets } from "../../src/limits/leased-budgets.ts";
import { createLeases, type Holder } from "../../src/supervisor/leases.ts";

const KIB = 1024;
const MIB = 1024 * KIB;
const TOTAL = 64 * MIB;

interface Process {
  readonly budget: Budget;
  readonly flush: () => void;
  readonly kill: () => void;
  /** Whether the process handles messages. */
  isStalled: boolean;
}

interface MachineOptions {
  readonly total?: number;
  readonly limit?: number;
  readonly slice?: number;
  readonly waitMs?: number;
  /** How long the supervisor waits for slices that it recalls, in ms. */
  readonly recallMs?: number;
  /** Bytes that each process frees if others need them. */
  readonly freeable?: readonly number[];
}

/** Creates processes and a supervisor. Their messages arrive in the next turn of the event loop. */
function createMachine(count: number, options: MachineOptions = {}): readonly Process[] {
  const { total = TOTAL, limit, slice, waitMs = 60_000, recallMs = 60_000, freeable } = options;
  const leases = createLeases({ recallMs });
  return Array.from({ length: count }, (_, index) => {
    let isAlive = true;
    const budgets = createLeasedBudgets({
      processes: count,
      waitMs,
      send: (request) => void setImmediate(() => isAlive && leases.receive(request, holder)),
    });
    const holder: Holder = {
      send: (reply) => void setImmediate(() => isAlive && !process.isStalled && budgets.receive(reply)),
    };
    let left = freeable?.[index] ?? 0;
    const budget = budgets.open("test", {
      total,
      limitOf: () => limit,
      ...(slice !== undefined && { slice }),
      ...(freeable && {
        onShortage(owner: string) {
          budget.giveBack(owner, left);
          left = 0;
        },
      }),
    });
    const process: Process = {
      budget,
      flush: budgets.flush,
      isStalled: false,
      kill() {
        isAlive = false;
        leases.end(holder);
      },
    };
    return process;
  });
}

/** Takes chunks round-robin until each process is rejected once. Returns the bytes that were taken from each budget. */
async function fill(
  budgets: readonly Pick<Budget, "take">[],
  owner: string,
  chunk: number,
): Promise<number[]> {
  const taken = budgets.map(() => 0);
  const open = new Set(budgets.keys());
  while (open.size > 0)
    for (const index of open)
      if (await budgets[index]?.take(owner, chunk)) taken[index] = (taken[index] ?? 0) + chunk;
      else open.delete(index);
  return taken;
}

const sum = (amounts: readonly number[]): number => amounts.reduce((a, b) => a + b, 0);
const turns = async (count: number): Promise<void> => {
  for (let i = 0; i < count; i++) await nextTurn();
};

describe("a budget that the supervisor leases to processes", () => {
  it.each([1, 2, 4, 16])("gives an owner the same with %i processes as with one budget", async (count) => {
    const alone = new FairBudget<string>(TOTAL);
    const [expected = 0] = await fill([alone], "a", 256 * KIB);
    const machine = createMachine(count);
    const taken = await fill(
      machine.map(({ budget }) => budget),
      "a",
      256 * KIB,
    );
    expect(sum(taken)).toBeGreaterThanOrEqual(expected);
    expect(sum(taken)).toBeLessThanOrEqual(expected * (1 + 1 / 16));
  });

  it.each([
    2, 4, 16,
  ])("stays within the total with %i processes and many owners, up to the fair shares", async (count) => {
    const owners = ["a", "b", "c", "d"];
    const alone = new FairBudget<string>(TOTAL);
    const expected: number[] = [];
    for (const owner of owners) expected.push(...(await fill([alone], owner, 256 * KIB)));
    const machine = createMachine(count);
    const taken: number[] = [];
    for (const owner of owners)
      taken.push(
        sum(
          await fill(
            machine.map(({ budget }) => budget),
            owner,
            256 * KIB,
          ),
        ),
      );
    for (const [index, bytes] of taken.entries())
      expect(Math.abs(bytes - (expected[index] ?? 0))).toBeLessThanOrEqual(TOTAL / 16);
  });

  it("applies an owner's own limit to all processes together", async () => {
    const machine = createMachine(4, { limit: 2 * MIB });
    const taken = await fill(
      machine.map(({ budget }) => budget),
      "a",
      16 * KIB,
    );
    expect(sum(taken)).toBeGreaterThanOrEqual(2 * MIB);
    expect(sum(taken)).toBeLessThanOrEqual(2 * MIB * (1 + 1 / 16));
  });

  it("counts single units exactly", async () => {
    const machine = createMachine(4, { total: Number.POSITIVE_INFINITY, limit: 16, slice: 0 });
    const budgets = machine.map(({ budget }) => budget);
    const results = await Promise.all(
      Array.from({ length: 40 }, (_, i) => budgets[i % 4]?.take("a", 1) ?? false),
    );
    expect(results.filter(Boolean)).toHaveLength(16);
    budgets[2]?.giveBack("a", 1);
    expect(await budgets[0]?.take("a", 1)).toBe(true);
    expect(await budgets[1]?.take("a", 1)).toBe(false);
  });

  it("is used at once for small amounts, and for larger ones after the first grant", async () => {
    const [process] = createMachine(16);
    const { budget } = process as Process;
    expect(budget.take("a", 40 * KIB)).toBe(true);
    expect(budget.take("b", 40 * KIB)).toBe(true);
    await turns(4);
    let promises = 0;
    for (let i = 0; i < 500; i++) {
      if (budget.take("a", 16 * KIB) !== true) promises++;
      await turns(4);
    }
    expect(promises).toBe(0);
  });

  it("takes unused slices back from other processes at once, and used ones when they are given back", async () => {
    const machine = createMachine(4);
    const [first, second, ...others] = machine as [Process, Process, ...Process[]];
    // Slices stay with the processes until they are recalled, because `flush` is not called.
    for (const { budget } of [second, ...others]) {
      expect(await budget.take("a", 8 * MIB)).toBe(true);
      budget.giveBack("a", 8 * MIB);
    }
    expect(await first.budget.take("a", 30 * MIB)).toBe(true);
    expect(await second.budget.take("a", 25 * MIB)).toBe(false);
    first.budget.giveBack("a", 30 * MIB);
    expect(await second.budget.take("a", 25 * MIB)).toBe(true);
  });

  it("returns slices that were not used for an interval", async () => {
    const [first, second] = createMachine(2) as [Process, Process];
    expect(await first.budget.take("a", 20 * MIB)).toBe(true);
    first.budget.giveBack("a", 20 * MIB);
    first.flush();
    first.flush();
    await turns(2);
    first.isStalled = true;
    // A recall would have no effect now.
    expect(await second.budget.take("a", 30 * MIB)).toBe(true);
  });

  it("takes back the slices of a process that has ended", async () => {
    const [first, second] = createMachine(2) as [Process, Process];
    expect(await first.budget.take("a", 30 * MIB)).toBe(true);
    expect(await second.budget.take("a", 25 * MIB)).toBe(false);
    first.kill();
    expect(await second.budget.take("a", 25 * MIB)).toBe(true);
  });

  it("rejects within the maximum wait while other processes do not respond, and grants free amounts", async () => {
    const machine = createMachine(3, { recallMs: 50 });
    const [stalled, second, third] = machine as [Process, Process, Process];
    expect(await stalled.budget.take("a", 30 * MIB)).toBe(true);
    stalled.budget.giveBack("a", 30 * MIB);
    stalled.isStalled = true;
    expect(await second.budget.take("a", 25 * MIB)).toBe(false);
    expect(await third.budget.take("b", 25 * MIB)).toBe(true);
  });

  it("does not wait for a supervisor that does not respond", async () => {
    const budgets = createLeasedBudgets({ processes: 2, waitMs: 20, send: () => {} });
    const budget = budgets.open("test", { total: TOTAL });
    expect(await budget.take("a", 25 * MIB)).toBe(false);
    expect(budget.take("a", 16 * KIB)).toBe(true);
  });

  it("lets processes free used amounts if another one needs them, and only as many as necessary", async () => {
    const machine = createMachine(3, { freeable: [0, 10 * MIB, 8 * MIB] });
    const [first, second, third] = machine as [Process, Process, Process];
    expect(await second.budget.take("a", 10 * MIB)).toBe(true);
    expect(await third.budget.take("a", 8 * MIB)).toBe(true);
    expect(await first.budget.take("a", 20 * MIB)).toBe(true);
    // The third process still uses its 8 MiB.
    expect(await second.budget.take("a", 6 * MIB)).toBe(true);
    expect(await second.budget.take("a", 8 * MIB)).toBe(false);
  });

  it("grants the takes of an owner in order", async () => {
    const [{ budget }] = createMachine(2) as [Process, Process];
    const order: number[] = [];
    await Promise.all(
      [4 * MIB, 1 * KIB, 2 * MIB].map(async (bytes) => {
        expect(await budget.take("a", bytes)).toBe(true);
        order.push(bytes);
      }),
    );
    expect(order).toEqual([4 * MIB, 1 * KIB, 2 * MIB]);
  });

  it("never blocks processes that hold a part and wait for more", async () => {
    const machine = createMachine(4);
    const use = async ({ budget }: Process, owner: string): Promise<void> => {
      let held = 0;
      while (held < 20 * MIB && (await budget.take(owner, MIB))) held += MIB;
      await turns(3);
      budget.giveBack(owner, held);
    };
    await Promise.all(Array.from({ length: 40 }, (_, i) => use(machine[i % 4] as Process, `owner ${i % 5}`)));
    // Everything was given back.
    expect(await machine[3]?.budget.take("late", 20 * MIB)).toBe(true);
    expect(await machine[0]?.budget.take("late", 10 * MIB)).toBe(true);
  });
});
