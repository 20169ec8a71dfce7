import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { FairQueue } from "../../src/limits/fairness.ts";

it("a fair queue serves its lanes round-robin, and the entries within a lane in order", () => {
  const queue = new FairQueue<string, string>();
  for (const item of ["a1", "a2", "a3", "b1", "c1", "b2"]) queue.push(item.slice(0, 1), item);
  expect(queue.size).toBe(6);
  expect(queue.peek()).toBe("a1");
  expect([queue.shift(), queue.shift()]).toEqual(["a1", "b1"]);
  // A new line waits for at most one entry of each other line.
  queue.push("d", "d1");
  expect([...queue.drain()]).toEqual(["c1", "a2", "b2", "d1", "a3"]);
  expect([queue.size, queue.peek(), queue.shift()]).toEqual([0, undefined, undefined]);
});

it("a fair queue skips lanes that are set aside, and serves them first when they are brought back", () => {
  const queue = new FairQueue<string, string>();
  for (const item of ["a1", "a2", "b1", "c1", "c2", "d1"]) queue.push(item.slice(0, 1), item);
  queue.setAside();
  expect([queue.shift(), queue.peek()]).toEqual(["b1", "c1"]);
  queue.setAside();
  expect([queue.shift(), queue.shift(), queue.peek(), queue.size]).toEqual(["d1", undefined, undefined, 4]);
  queue.push("a", "a3");
  queue.push("b", "b2");
  queue.bringBack();
  expect([...queue.drain()]).toEqual(["a1", "c1", "b2", "a2", "c2", "a3"]);
});

it("a fair queue returns every entry of a lane that never becomes empty", () => {
  const queue = new FairQueue<string, number>();
  const taken: (number | undefined)[] = [];
  for (let n = 0; n < 10_000; n++) {
    queue.push("a", n);
    queue.push("a", n + 0.5);
    taken.push(queue.shift());
  }
  taken.push(...queue.drain());
  expect(taken).toEqual(Array.from({ length: 20_000 }, (_, n) => n / 2));
});

it("a fair queue keeps no reference to a returned entry, even if the same lane has more entries", async () => {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  const queue = new FairQueue<string, object>();
  queue.push("a", { n: 1 });
  queue.push("a", { n: 2 });
  const returned = new WeakRef(queue.shift() ?? {});
  // A weak reference stays strong until the end of the turn that created it.
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  expect([returned.deref(), queue.size]).toEqual([undefined, 1]);
});

it("a fair queue removes a waiting entry, and its lane if that becomes empty", () => {
  const queue = new FairQueue<string, string>();
  for (const item of ["a1", "a2", "b1", "c1"]) queue.push(item.slice(0, 1), item);
  expect(queue.shift()).toBe("a1");
  queue.remove("b", "b1");
  queue.remove("b", "b1");
  queue.remove("a", "a1");
  expect([queue.size, queue.sizeOf("a"), queue.sizeOf("b")]).toEqual([2, 1, 0]);
  queue.push("b", "b2");
  expect([...queue.drain()]).toEqual(["c1", "a2", "b2"]);
});

it("a fair queue removes an entry whose lane is set aside", () => {
  const queue = new FairQueue<string, string>();
  for (const item of ["a1", "b1"]) queue.push(item.slice(0, 1), item);
  queue.setAside();
  queue.remove("a", "a1");
  queue.bringBack();
  expect([...queue.drain()]).toEqual(["b1"]);
});
