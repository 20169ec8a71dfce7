import type { Socket } from "node:net";
import { expect, it } from "vitest";
import { createDistributor, type Target } from "../../src/supervisor/distribute.ts";
import { until } from "../support/until.ts";

/** Connections as the distributor sees them. It only reads whether they are destroyed. */
const connections = (count: number): readonly Socket[] =>
  Array.from({ length: count }, () => ({ destroyed: false }) as Socket);

function createTarget(): Target & { readonly passed: Socket[] } {
  const passed: Socket[] = [];
  return {
    passed,
    pass(socket) {
      passed.push(socket);
      return true;
    },
  };
}

function confirmAll(
  distributor: ReturnType<typeof createDistributor>,
  target: Target & { readonly passed: Socket[] },
) {
  for (let confirmed = 0; confirmed < target.passed.length; confirmed++) distributor.took(target);
}

it("gives each ready process the same number of connections that arrive at once, one at a time", () => {
  const distributor = createDistributor(() => {});
  const [a, b, starting] = [createTarget(), createTarget(), createTarget()];
  for (const target of [a, b, starting]) distributor.add(target);
  for (const target of [a, b]) distributor.markReady(target);
  for (const socket of connections(64)) distributor.take(socket);
  expect([a.passed, b.passed, starting.passed].map(({ length }) => length)).toEqual([1, 1, 0]);
  confirmAll(distributor, a);
  confirmAll(distributor, b);
  expect([a.passed, b.passed, starting.passed].map(({ length }) => length)).toEqual([32, 32, 0]);
});

it("gives the connections that wait for a stalled or ended process to others, and those without a process to a fallback", async () => {
  const homeless: Socket[] = [];
  const distributor = createDistributor((socket) => homeless.push(socket));
  const [stalled, other] = [createTarget(), createTarget()];
  const [early, first] = connections(2) as [Socket, Socket];
  distributor.take(early);
  expect(homeless).toEqual([early]);
  distributor.add(stalled);
  distributor.take(first);
  expect(stalled.passed).toEqual([first]);
  distributor.markReady(stalled);
  const late = connections(2);
  for (const socket of late) distributor.take(socket);
  distributor.add(other);
  distributor.markReady(other);
  await until(() => {
    confirmAll(distributor, other);
    return other.passed.length === 2;
  });
  const [last] = connections(1);
  if (last === undefined) throw new Error("there is no connection");
  distributor.take(last);
  distributor.remove(stalled);
  distributor.remove(other);
  expect([...stalled.passed, ...other.passed, ...homeless]).toEqual(
    expect.arrayContaining([early, first, ...late, last]),
  );
});
