import { describe, expect, it } from "vitest";
import { sse } from "../../src/channels/sse/sse.ts";
import type { ChannelIdentity } from "../../src/event/channel.ts";
import type { Definition } from "../../src/event/definition.ts";
import type { VerifiedDelivery } from "../../src/event/received.ts";
import { normalize, type Selection } from "../../src/normalize/normalize.ts";
import { compileRules } from "../../src/normalize/rule-set.ts";
import { channel, deliveryOf, fieldOf, type Settings, settings } from "./support.ts";

const stream: ChannelIdentity = { ...channel, kind: "sse" };

function rulesOf(definitions: readonly Definition[], changes: Settings = {}) {
  return compileRules({ channel: stream, profile: sse.profile, config: settings(changes), definitions });
}

function run(
  delivery: VerifiedDelivery,
  definitions: readonly Definition[] = [{ type: "t" }],
  changes: Settings = {},
  only?: Selection,
) {
  const rules = rulesOf(definitions, changes);
  if (!rules.ok) throw new Error(JSON.stringify(rules.error));
  let ids = 0;
  const deps = { validatorFor: () => ({ validate: () => undefined }), newEventId: () => `fresh_${++ids}` };
  const outcome = normalize(rules.value, delivery, deps, only);
  if (outcome instanceof Promise || outcome.kind !== "normalized")
    throw new Error("not normalized synchronously");
  return outcome;
}

/** Builds a frame with a last event id and the delivery id that the stream assigns. */
const frame = (
  body: unknown,
  lastEventId?: string,
  deliveryId: string | undefined = lastEventId,
  headers: Record<string, string> = {},
): VerifiedDelivery =>
  deliveryOf(body, {
    headers: {
      event: "message",
      ...(lastEventId !== undefined && { "last-event-id": lastEventId }),
      ...headers,
    },
    ...(deliveryId !== undefined && { deliveryId }),
  });

describe("a server-sent event (SSE) as a delivery", () => {
  it("is matched by its event name through $event, and $lastEventId can supply its id", () => {
    const definitions = [{ type: "created", typePath: "$event", idPath: "$lastEventId", payloadPath: "$.a" }];
    const { events } = run(frame({ a: 1 }, "7", "7/2", { event: "created" }), definitions);
    expect(events.map(({ id }) => id)).toEqual(["7"]);
    expect(fieldOf(events[0], "data")).toBe("1");
    expect(run(frame({ a: 1 }, "7"), definitions).failures).toMatchObject([{ reason: "no_match" }]);
  });

  it("uses its last event id as its id, with a number appended if an earlier SSE event had the same one", () => {
    const idOf = (delivery: VerifiedDelivery) => run(delivery).events[0]?.id;
    expect(idOf(frame({}, "7"))).toBe("7");
    expect(idOf(frame({}, "7", "7/2"))).toBe("7/2");
    expect(idOf(frame({}))).toBe("fresh_1");
  });

  it("yields ids with the item's position appended if its data contains several items", () => {
    const items = run(frame([1, 2], "7", "7/3"), [{ type: "t" }], { itemsPath: "$" });
    expect(items.events.map(({ id }) => id)).toEqual(["7/3/0", "7/3/1"]);
    const lines = run(frame("1\n2\n", "7", "7", { "content-type": "application/x-ndjson" }));
    expect(lines.events.map(({ id }) => id)).toEqual(["7/0", "7/1"]);
  });

  it("is not a duplicate of an SSE event whose last event id looks like a numbered id", () => {
    const identityOf = (delivery: VerifiedDelivery) => run(delivery).events[0]?.identity;
    expect(identityOf(frame({}, "a", "a/2"))).not.toBe(identityOf(frame({}, "a/2")));
    expect(identityOf(frame({}, "a", "a/2"))).toBe(identityOf(frame({ other: 1 }, "a", "a/2")));
    expect(identityOf(frame({}))).toBe("");
  });

  it("keeps its id if it is redriven from quarantine", () => {
    const failed = run(frame({}, "7", "7/2"), [{ type: "t", payloadPath: "$.a" }]);
    expect(failed.failures).toMatchObject([{ reason: "payload_missing", item: null }]);
    const selection: Selection = { id: "qua_1", item: null, definitions: ["t"], asNewId: false };
    const redriven = run(frame({}, "7", "7/2"), [{ type: "t" }], {}, selection);
    const original = run(frame({}, "7", "7/2"));
    expect(redriven.events.map(({ id, identity }) => [id, identity])).toEqual(
      original.events.map(({ id, identity }) => [id, identity]),
    );
  });

  it("rejects paths that start from $headers instead of $event or $lastEventId", () => {
    expect(rulesOf([{ type: "t", typePath: "$headers.x" }])).toMatchObject({
      ok: false,
      error: [{ path: "events[0].typePath", message: expect.stringContaining("$event, $lastEventId") }],
    });
  });
});

describe("a heartbeat in a stream of JSON events", () => {
  const reasonOf = (delivery: VerifiedDelivery, definitions: readonly Definition[]) =>
    run(delivery, definitions).failures.map(({ reason }) => reason);
  const named = (event: string, data: string) => frame(data, undefined, undefined, { event });
  const BY_NAME = [{ type: "price", typePath: "$event" }];
  const BY_DATA = [{ type: "price", typePath: "$.type" }];
  const ALL = [{ type: "any" }];

  it.each([
    ["a named text, if definitions match names", named("ping", "2026-01-15 12:00"), BY_NAME],
    ["a named text, if definitions match data", named("ping", "keep-alive"), BY_DATA],
    ["a named text, if a definition matches everything", named("ping", "keep-alive"), ALL],
    ["an unnamed text, if definitions match names", named("message", "heartbeat"), BY_NAME],
    ["an unnamed text, if definitions match data", named("message", "heartbeat"), BY_DATA],
    ["an unnamed text, if a definition matches everything", named("message", "heartbeat"), ALL],
    ["a broken JSON value with another name, if definitions match names", named("ping", "{"), BY_NAME],
    ["empty data", named("message", ""), ALL],
    ["a colon", named("message", ":"), BY_DATA],
    ["a text that begins like a JSON literal", named("message", "null and void"), ALL],
  ])("matches no definition: %s", (_, delivery, definitions) => {
    expect(reasonOf(delivery, definitions)).toEqual(["no_match"]);
  });

  it.each([
    ["its name is that of a definition", named("price", "soon"), BY_NAME],
    ["it could be a truncated event, if definitions match data", named("message", '{"type":"price'), BY_DATA],
    ["it could be a truncated event, if a definition matches everything", named("message", "[1,"), ALL],
  ])("is an invalid event if %s", (_, delivery, definitions) => {
    expect(reasonOf(delivery, definitions)).toEqual(["invalid_body"]);
  });

  it("matches no definition if it is JSON without any item", () => {
    const ping = named("ping", '{"time":1}');
    const failuresOf = (definitions: readonly Definition[]) =>
      run(ping, definitions, { itemsPath: "$.changes" }).failures.map(({ reason }) => reason);
    expect(failuresOf(BY_DATA)).toEqual(["no_match"]);
    expect(failuresOf(ALL)).toEqual(["no_match"]);
    expect(failuresOf([{ type: "ping", typePath: "$event" }])).toEqual(["invalid_body"]);
  });

  it("is an event without data if a definition selects its name", () => {
    const { events, failures } = run(named("price", ""), BY_NAME);
    expect(failures).toEqual([]);
    expect(events).toHaveLength(1);
    expect(fieldOf(events[0], "data")).toBeUndefined();
  });

  it("affects no other line of its event", () => {
    const lines = frame('{"n":1}\nping\n{"n":', undefined, undefined, {
      "content-type": "application/x-ndjson",
    });
    const { events, failures } = run(lines, ALL);
    expect(events).toHaveLength(1);
    expect(failures).toMatchObject([
      { item: 1, reason: "no_match" },
      { item: 2, reason: "invalid_body" },
    ]);
  });
});
