import { describe, expect, test } from "vitest";
import { cursorKey } from "../../../src/bus/keys.ts";
import { createFindKnownIds } from "../../../src/bus/publish/known-ids.ts";
import { createQuarantineStore } from "../../../src/bus/quarantine/quarantine.ts";
import { createSourcePositions } from "../../../src/bus/sources/source-positions.ts";
import { ANY_DIGEST, type OutgoingEvent } from "../../../src/event/event.ts";
import { opened } from "../../support/opened.ts";
import { now, openedBus, testChannel, testEvent, testPolicy, testTopic } from "../support.ts";

const { server, redis, publish } = openedBus();
const positions = opened(() => createSourcePositions({ redis }));
const quarantine = opened(() => createQuarantineStore({ redis, publish }));
const findKnown = opened(() => createFindKnownIds({ redis }));

/** A source that publishes events of another channel. */
async function reconcilingSource() {
  const webhook = testChannel();
  const source = testChannel();
  const ref = { number: source.number, topics: [testTopic(source), testTopic(webhook)] };
  async function take() {
    const taken = await positions.takeOver(ref);
    if (taken.kind !== "acquired") throw new Error(`wait ${taken.waitMs} ms`);
    return taken;
  }
  const send = (...events: OutgoingEvent[]) =>
    publish({ channel: webhook, events, policy: testPolicy }, now).then(({ receipts }) => receipts);
  const recover = (epoch: number, version: number, ...events: OutgoingEvent[]) => {
    const position = { source: source.number, epoch, version, value: `at ${version}` };
    return publish({ channel: webhook, events, policy: testPolicy, position }, now).then(
      ({ receipts }) => receipts,
    );
  };
  const cursor = () => server.client.hmget(cursorKey(source.number), "v", "c");
  const ids = async () =>
    (await server.client.xrange(testTopic(webhook), "-", "+")).map(([, fields]) => fields[3]);
  return { webhook, source, take, send, recover, cursor, ids };
}

const statuses = (receipts: readonly { readonly status: string }[]) => receipts.map(({ status }) => status);

describe("a source that publishes events of another channel", () => {
  test("deduplicates with that channel, and moves its own cursor in the same write", async () => {
    const { webhook, source, take, send, recover, cursor, ids } = await reconcilingSource();
    const { epoch } = await take();
    await send(testEvent(webhook, "a"));
    const recovered = await recover(epoch, 0, testEvent(webhook, "a"), testEvent(webhook, "b"));
    expect(statuses(recovered)).toEqual(["duplicate", "published"]);
    expect(statuses(await send(testEvent(webhook, "b")))).toEqual(["duplicate"]);
    expect(await ids()).toEqual(["a", "b"]);
    expect(await cursor()).toEqual(["1", "at 0"]);
    expect(await server.client.exists(cursorKey(webhook.number))).toBe(0);
    const notes = await server.client.hgetall(`{${testTopic(webhook)}}:e`);
    expect(notes).toEqual({ [`s${source.number}`]: String(epoch) });
  });

  test("rejects the writes of its previous owner, also on topics that were added later", async () => {
    const { webhook, take, recover, ids } = await reconcilingSource();
    const old = await take();
    const next = await take();
    const added = testEvent(webhook, "c", { type: "added" });
    await recover(next.epoch, 0, testEvent(webhook, "b"), added);
    const late = testEvent(webhook, "d", { type: "added" });
    await expect(recover(old.epoch, 1, late)).rejects.toMatchObject({ stale: "epoch" });
    await expect(recover(old.epoch, 1, testEvent(webhook, "a"))).rejects.toMatchObject({ stale: "epoch" });
    expect(await ids()).toEqual(["b"]);
    expect(await server.client.xlen(added.topic)).toBe(1);
  });

  test("publishes each event once if its worker ends before, between or after its writes", async () => {
    const { webhook, take, recover, cursor, ids } = await reconcilingSource();
    const events = Array.from({ length: 1_200 }, (_, i) => testEvent(webhook, `e${i}`));
    const dead = await take();
    // A delivery of 1,200 events is three calls. The worker ended after the first, so the cursor did not move.
    await publish({ channel: webhook, events: events.slice(0, 500), policy: testPolicy }, now);
    const next = await take();
    await expect(recover(dead.epoch, 0, ...events)).rejects.toMatchObject({ stale: "epoch" });
    const receipts = statuses(await recover(next.epoch, 0, ...events));
    expect(receipts.filter((status) => status === "duplicate")).toHaveLength(500);
    expect(receipts.filter((status) => status === "published")).toHaveLength(700);
    // The worker ended after the write, before it knew the result.
    await expect(recover(next.epoch, 0, ...events)).rejects.toMatchObject({ stale: "cursor" });
    const last = await take();
    expect(last).toMatchObject({ version: 1, value: "at 0" });
    expect(statuses(await recover(last.epoch, 1, ...events))).toEqual(events.map(() => "duplicate"));
    expect(await ids()).toEqual(events.map(({ id }) => id));
    expect(await cursor()).toEqual(["2", "at 1"]);
  });

  test("quarantines a conflict in that channel with the write that moves its own cursor", async () => {
    const { webhook, source, take, send, recover, cursor } = await reconcilingSource();
    const { epoch } = await take();
    await send(testEvent(webhook, "a"));
    expect(statuses(await recover(epoch, 0, testEvent(webhook, "a", { data: "other" })))).toEqual([
      "conflict",
    ]);
    expect(await cursor()).toEqual([null, null]);
    const failure = { item: 0, reason: "id_conflict", detail: "a", definitions: [] } as const;
    const delivery = { method: "POST", headers: {}, query: {}, body: Buffer.from("x"), arrivedAtMs: 1 };
    const position = { source: source.number, epoch, version: 0, value: "end" };
    const write = { delivery, items: [{ failure, keep: "all" as const }] };
    await quarantine.put(webhook, write, { ...now, position });
    expect(await cursor()).toEqual(["1", "end"]);
    const filter = { organizationId: webhook.organizationId, channelNumbers: [webhook.number] };
    expect((await quarantine.list(filter, { limit: 1, offset: 0 })).total).toBe(1);
  });
});

describe("an event that is compared by its id alone", () => {
  const byId = (event: OutgoingEvent): OutgoingEvent => ({ ...event, digest: ANY_DIGEST });

  test("is a duplicate of a received event with other data", async () => {
    const { webhook, take, send, recover } = await reconcilingSource();
    const { epoch } = await take();
    await send(testEvent(webhook, "a"));
    const other = byId(testEvent(webhook, "a", { data: "other" }));
    const window = { dedupeWindowMs: testPolicy.dedupeWindowMs };
    expect(await findKnown([other], window)).toMatchObject([{ kind: "duplicate" }]);
    expect(statuses(await recover(epoch, 0, other))).toEqual(["duplicate"]);
    expect(statuses(await send(testEvent(webhook, "a", { data: "third" })))).toEqual(["conflict"]);
  });

  test("makes a later delivery with any data a duplicate", async () => {
    const { webhook, take, send, recover, ids } = await reconcilingSource();
    const { epoch } = await take();
    expect(statuses(await recover(epoch, 0, byId(testEvent(webhook, "a"))))).toEqual(["published"]);
    const late = testEvent(webhook, "a", { data: "late" });
    expect(await findKnown([late], { dedupeWindowMs: testPolicy.dedupeWindowMs })).toMatchObject([
      { kind: "duplicate" },
    ]);
    expect(statuses(await send(late, testEvent(webhook, "a", { data: "later" })))).toEqual([
      "duplicate",
      "duplicate",
    ]);
    expect(await ids()).toEqual(["a"]);
  });
});
