import { expect, it } from "vitest";
import { createTurns } from "../../src/lib/turns.ts";

it("runs at most one task per event loop iteration, in call order", async () => {
  const takeTurn = createTurns();
  let iteration = 0;
  let isRunning = true;
  const count = (): void => {
    iteration++;
    if (isRunning) setImmediate(count);
  };
  setImmediate(count);
  const tasks = Array.from({ length: 5 }, (_, task) => takeTurn(() => ({ task, iteration })));
  const done = await Promise.all(tasks);
  isRunning = false;
  expect(done.map(({ task }) => task)).toEqual([0, 1, 2, 3, 4]);
  expect(new Set(done.map((one) => one.iteration)).size).toBe(5);
});

it("continues with the next task if one fails", async () => {
  const takeTurn = createTurns();
  const failed = takeTurn(() => {
    throw new Error("failed");
  });
  const next = takeTurn(() => "next");
  await expect(failed).rejects.toThrow("failed");
  expect(await next).toBe("next");
});
