import { beforeEach, describe, expect, it } from "vitest";
import { createTail, type Tail } from "../../../src/bus/topics/tail.ts";
import { createLog } from "../../../src/log.ts";
import { createStreamClient } from "../../../src/resources/events/events/stream-client.ts";
import {
  createStreamHub,
  type StreamHub,
  type StreamMember,
} from "../../../src/resources/events/events/stream-hub.ts";
import { parsePosition } from "../../../src/resources/events/events/stream-position.ts";
import { openedBus, testChannel, testTopic } from "../../bus/support.ts";
import { until } from "../../support/until.ts";

const { server, redis } = openedBus();
const JOINED_MS = 1_000;
let topic: string;
let stopping: AbortController;
beforeEach(() => {
  topic = testTopic(testChannel());
  stopping = new AbortController();
  return () => stopping.abort();
});

/** Creates a tail whose read pauses, until `release` is called, once it has found the given entry. */
function pauseReadAt(entryId: string) {
  const tail = createTail({ redis });
  const found = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const read: Tail["read"] = async (after, limits, onEntry) => {
    const entries: Parameters<typeof onEntry>[] = [];
    const result = await tail.read(after, limits, (...entry) => void entries.push(entry));
    if (entries.some(([, entry]) => entry.entryId === entryId)) {
      found.resolve();
      await released.promise;
    }
    for (const entry of entries) onEntry(...entry);
    return result;
  };
  return { tail: { read }, found: found.promise, release: () => released.resolve() };
}

const hubOf = (tail: Tail): StreamHub =>
  createStreamHub({
    tail,
    listTopics: async () => [topic],
    stopping: stopping.signal,
    log: createLog({ level: "silent" }),
  });

/** Creates a reader of the topic that starts at `JOINED_MS`. */
function readerOf(hub: StreamHub, tail: Tail) {
  const ids: string[] = [];
  const client = createStreamClient({
    ...hub,
    tail,
    start: { sinceMs: JOINED_MS, exact: new Map() },
    sink: { isFull: () => false, write: (text) => void ids.push(/id: (\S+)/.exec(text)?.[1] ?? "") },
  });
  const member: StreamMember = { appId: "a", type: undefined, client, close: () => {} };
  const entries = () => ids.map((id) => id.split(":").at(-1));
  return { member, client, ids, entries };
}

const append = (entryId: string) =>
  server.client.xadd(
    topic,
    entryId,
    ...["specversion", "1.0", "id", "1", "source", "/s", "type", "push"],
    ...["time", "2026-01-01T00:00:00Z", "datacontenttype", "application/json", "data", "{}"],
  );

describe("the shared reader of event streams", () => {
  it("sends every entry to a client that joins while a read of its topic is in flight", async () => {
    const { tail, found, release } = pauseReadAt("1002-0");
    const hub = hubOf(tail);
    const first = readerOf(hub, tail);
    hub.join(first.member, [topic], JOINED_MS, JOINED_MS);
    await append("1001-0");
    await until(() => first.entries().includes("1001-0"));
    await append("1002-0");
    await found;
    hub.leave(first.member);
    const second = readerOf(hub, createTail({ redis }));
    hub.join(second.member, [topic], JOINED_MS, JOINED_MS);
    release();
    await until(() => second.entries().includes("1002-0"));
    expect(second.entries()).toEqual(["1001-0", "1002-0"]);
  });

  it.each([
    ["up to which its topics were read", [2_000, 1_000]],
    // The time of a topic list is not always an integer.
    ["at which its topics were listed", [1_000, 2_000.5]],
  ] as const)("gives a new client a resume position no later than the time %s", async (_, [
    nowAgoMs,
    listedAgoMs,
  ]) => {
    const tail = createTail({ redis });
    const hub = hubOf(tail);
    const other = readerOf(hub, tail);
    hub.join(other.member, [topic], JOINED_MS, JOINED_MS);
    await until(() => hub.completeUntilMs() > 0);
    const knownMs = hub.completeUntilMs();
    const reader = readerOf(hub, tail);
    hub.join(reader.member, [topic], knownMs - nowAgoMs, knownMs - listedAgoMs);
    reader.client.beat();
    const position = parsePosition(reader.ids[0] ?? "");
    expect(position?.sinceMs).toBeLessThanOrEqual(knownMs - 2_000);
    hub.leave(other.member);
    hub.leave(reader.member);
  });
});
