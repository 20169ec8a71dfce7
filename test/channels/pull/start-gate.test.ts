import { afterEach, expect, it, vi } from "vitest";
import { createStartGate } from "../../../src/channels/pull/start-gate.ts";

const { signal } = new AbortController();
const turn = () => new Promise((resolve) => setImmediate(resolve));

afterEach(() => {
  vi.useRealTimers();
});

it("the start gate admits a limited number in order, also when a waiter gives up", async () => {
  const gate = createStartGate({ places: 2, mostMs: 60_000 });
  const inside: string[] = [];
  const enter = async (name: string, options = { signal }) => {
    const admission = await gate.admit(options);
    inside.push(name);
    return admission;
  };
  const [a, b] = await Promise.all([enter("a"), enter("b")]);
  const leaving = new AbortController();
  const c = enter("c", { signal: leaving.signal });
  const d = enter("d");
  await turn();
  expect(inside).toEqual(["a", "b"]);
  leaving.abort(new Error("no longer"));
  await expect(c).rejects.toThrow("no longer");
  a.done();
  // A place is given back once.
  a.done();
  await d;
  const e = enter("e");
  await turn();
  expect(inside).toEqual(["a", "b", "d"]);
  b.done();
  await e;
});

it("the start gate gives an overdue holder's place to the next waiter, once", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const gate = createStartGate({ places: 1, mostMs: 2_000 });
  const slow = await gate.admit({ signal });
  const waiting = gate.admit({ signal });
  vi.advanceTimersByTime(2_000);
  const next = await waiting;
  slow.done();
  let isIn = false;
  const third = gate.admit({ signal }).then(() => {
    isIn = true;
  });
  await turn();
  expect(isIn).toBe(false);
  next.done();
  await third;
});
