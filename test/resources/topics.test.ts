import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestSpine, type TestSpine } from "../support/spine.ts";

let spine: TestSpine;
beforeAll(async () => {
  spine = await startTestSpine();
});
afterAll(() => spine[Symbol.asyncDispose]());

const types = ["a", "b", "c"];
const install = () =>
  spine.install({ uid: "main", kind: "webhook", events: types.map((type) => ({ type, typePath: "$.t" })) });

it("tells of each topic what is in it and who reads it; an unused one is empty", async () => {
  const app = await install();
  const [{ id: channelId }] = app.channels;
  const { body: subscription } = await spine.api.call("POST", `/apps/${app.id}/events/subscribe`, {
    eventUid: "main:a",
    startAt: "earliest",
  });
  const entries = [];
  for (let i = 0; i < 3; i++)
    entries.push((await spine.send(channelId, { t: "a", i })).events[0]?.entryId ?? "");
  const { body, headers } = await spine.api.call("GET", `/apps/${app.id}/topics`);
  expect(headers.get("x-total-count")).toBe("3");
  const entryOf = (entryId = "") => ({ entryId, time: new Date(Number.parseInt(entryId, 10)).toISOString() });
  expect(body[0]).toEqual({
    topic: `events.${app.organizationId}.apps.app.event_received.${app.id}.main.a`,
    channelUid: "main",
    type: "a",
    length: 3,
    firstEntry: entryOf(entries[0]),
    lastEntry: entryOf(entries[2]),
    bytes: expect.any(Number),
    groups: [{ name: subscription.id, consumers: 0, pending: 0, lastDeliveredId: "0-0", lag: 3 }],
  });
  expect(body[0].bytes).toBeGreaterThan(300);
  expect(body[1]).toMatchObject({
    type: "b",
    length: 0,
    firstEntry: null,
    lastEntry: null,
    bytes: 0,
    groups: [],
  });
  expect(JSON.stringify(body)).not.toContain(channelId);
});

it("lists them in pages, in order of creation, then name", async () => {
  const app = await install();
  await spine.api.call("POST", `/apps/${app.id}/channels`, {
    uid: "a",
    kind: "webhook",
    events: [{ type: "z" }],
  });
  const list = async (query: string) =>
    (await spine.api.call("GET", `/apps/${app.id}/topics${query}`)).body.map(
      ({ type }: { type: string }) => type,
    );
  expect(await list("")).toEqual(["a", "b", "c", "z"]);
  expect(await list("?limit=2&offset=1")).toEqual(["b", "c"]);
});

it("lists what a deleted channel has left", async () => {
  const app = await install();
  const [{ id: channelId }] = app.channels;
  await spine.send(channelId, { t: "a" });
  await spine.api.call("DELETE", `/apps/${app.id}/channels/${channelId}`);
  const { body } = await spine.api.call("GET", `/apps/${app.id}/topics`);
  expect(body[0]).toMatchObject({ type: "a", length: 1 });
});

it("answers another organization as if there were no such app", async () => {
  const app = await install();
  const stranger = spine.api.as(await spine.api.strangerKey());
  const { status, body } = await stranger("GET", `/apps/${app.id}/topics`);
  const missing = await stranger("GET", `/apps/${app.id.slice(0, -3)}000/topics`);
  expect([status, body]).toEqual([404, missing.body]);
});
