import { expect, it } from "vitest";
import { createEventCursors } from "../../../src/bus/topics/event-cursors.ts";

const keyring = { channelIdKey: Buffer.alloc(32, 1) };
const subscription = { principal: "org_1/key_1", name: "app.in.tick", args: { filter: { a: 1, b: [2] } } };
const position = { after: "1769851800000-3", appended: 12 };

it("keeps whether the number of entries is known", () => {
  const cursors = createEventCursors(keyring);
  const uncounted = { ...position, appended: undefined };
  expect(cursors.open(subscription, cursors.seal(subscription, uncounted))).toEqual(uncounted);
});

it("opens a cursor on any gateway of the database, whichever master key it has", () => {
  const cursor = createEventCursors(keyring).seal(subscription, position);
  expect(
    createEventCursors({ channelIdKey: Buffer.from(keyring.channelIdKey) }).open(subscription, cursor),
  ).toEqual(position);
});

it("opens a cursor if the same arguments have another order", () => {
  const cursors = createEventCursors(keyring);
  const args = { filter: { b: [2], a: 1 } };
  expect(cursors.open({ ...subscription, args }, cursors.seal(subscription, position))).toEqual(position);
});

it.each([
  ["another caller", { principal: "org_1/key_2" }],
  ["another name", { name: "app.in.tock" }],
  ["other arguments", { args: { filter: { a: 1, b: [3] } } }],
])("rejects a cursor of %s", (_, change) => {
  const cursors = createEventCursors(keyring);
  const cursor = cursors.seal({ ...subscription, ...change }, position);
  expect(cursors.open(subscription, cursor)).toBeUndefined();
});

it("rejects a cursor of another database, and a modified one", () => {
  const cursors = createEventCursors(keyring);
  const cursor = cursors.seal(subscription, position);
  const foreign = createEventCursors({ channelIdKey: Buffer.alloc(32, 2) });
  expect(foreign.open(subscription, cursor)).toBeUndefined();
  const changed = cursor.slice(0, -1) + (cursor.endsWith("A") ? "B" : "A");
  expect(cursors.open(subscription, `${changed}A`)).toBeUndefined();
});
