import { createHmac } from "node:crypto";
import { beforeEach, describe, expect, it } from "vitest";
import type { z } from "zod";
import { createQuarantineStore } from "../../src/bus/quarantine/quarantine.ts";
import { webhookConfigSchema } from "../../src/channels/webhook/config.ts";
import { webhook } from "../../src/channels/webhook/webhook.ts";
import type { ChannelIdentity } from "../../src/event/channel.ts";
import type { Definition } from "../../src/event/definition.ts";
import type { IngestResult } from "../../src/event/ingest.ts";
import type { Outcome } from "../../src/event/outcome.ts";
import type { HookExchange } from "../../src/http/hook-exchange.ts";
import { createBodyBudget } from "../../src/ingest/body/body-budget.ts";
import type { CompiledChannel } from "../../src/ingest/compile-channel.ts";
import { createReceive } from "../../src/ingest/receive.ts";
import { createWriter, type WriterDeps } from "../../src/ingest/write.ts";
import { UnavailableError } from "../../src/lib/errors.ts";
import { normalize } from "../../src/normalize/normalize.ts";
import { compileRules } from "../../src/normalize/rule-set.ts";
import { openedBus, testChannel, testPublish, testTopic } from "../bus/support.ts";
import { opened } from "../support/opened.ts";
import { CEILING_MS, until } from "../support/until.ts";
import { senderOf } from "../verify/support.ts";
import { createTestExchange, createTestLimits, requireIngested } from "./receive-support.ts";

let results: IngestResult[];
let identity: ChannelIdentity;
const { server, redis } = openedBus();
const quarantine = opened(() => createQuarantineStore({ redis, publish: testPublish(redis) }));
beforeEach(() => {
  results = [];
  identity = testChannel();
});

const { signal } = new AbortController();

const PUSH: readonly Definition[] = [{ type: "push", idPath: "$.id" }];

/** Creates an active channel and the dependencies of a writer. */
function prepare(
  config: z.input<typeof webhookConfigSchema>,
  definitions: readonly Definition[],
  parts: Partial<WriterDeps>,
): { readonly channel: CompiledChannel; readonly deps: WriterDeps } {
  const parsed = webhookConfigSchema.parse(config);
  const rules = compileRules({
    channel: identity,
    profile: webhook.profile,
    config: parsed,
    definitions,
  });
  if (!rules.ok) throw new Error(JSON.stringify(rules.error));
  const channel: CompiledChannel = {
    identity,
    version: 1,
    connectionId: null,
    state: "active",
    pause: undefined,
    limits: parsed.limits,
    kindConfig: parsed,
    acceptsContentType: () => true,
    answer: "outcome",
    config: parsed,
    rules: rules.value,
    methods: ["POST"],
    sender: senderOf(parsed),
  };
  let ids = 0;
  const validatorFor = () => ({ validate: () => undefined });
  const deps: WriterDeps = {
    publish: testPublish(redis),
    quarantine,
    normalize: (rules, delivery, ...more) =>
      normalize(rules, delivery, { validatorFor, newEventId: () => `fresh_${++ids}` }, ...more),
    concludeFetched() {},
    countResult() {},
    concludeRedriven() {},
    countUnset() {},
    ...parts,
  };
  return { channel, deps };
}

const exchangeOf = (body: unknown, headers: Record<string, string> = {}) =>
  createTestExchange({
    target: "/hooks/x?a=1",
    headers,
    body: Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
  });

/** Creates a function that sends a delivery to an active channel. It rejects if the delivery fails. */
function open(
  config: z.input<typeof webhookConfigSchema> = {},
  definitions: readonly Definition[] = PUSH,
  parts: Partial<WriterDeps> = {},
) {
  const { channel, deps } = prepare(config, definitions, parts);
  const { publishNormalized } = createWriter(deps);
  const pending = new Map<HookExchange, PromiseWithResolvers<IngestResult>>();
  let nowMs = Date.now();
  const receive = createReceive({
    findChannel: () => channel,
    runtimes: new Map([["webhook", { push: {} }]]),
    limits: createTestLimits(),
    bodies: createBodyBudget(),
    answerHandshake: () => Promise.reject(new Error("the channel has no handshakes")),
    reactFirst: () => Promise.reject(new Error("the channel has no reactions")),
    bufferWhilePaused: () => Promise.reject(new Error("the channel is not paused")),
    normalize: deps.normalize,
    quarantine: deps.quarantine,
    route: () => Promise.reject(new Error("the channel is no intake")),
    publishNormalized,
    clock: () => nowMs,
    conclude({ exchange }, result) {
      const sent = pending.get(exchange);
      const ingested = requireIngested(result, (reason) => sent?.reject(reason));
      if (ingested === undefined) return;
      results.push(ingested);
      sent?.resolve(ingested);
    },
  });
  return (body: unknown, headers?: Record<string, string>, arrivedAtMs = Date.now()) => {
    const exchange = exchangeOf(body, headers);
    const sent = Promise.withResolvers<IngestResult>();
    pending.set(exchange, sent);
    nowMs = arrivedAtMs;
    receive("x", exchange);
    return sent.promise;
  };
}

function createOutcome(result: IngestResult): Outcome {
  if (result.kind !== "accepted") throw new Error(JSON.stringify(result));
  return result.outcome;
}

const length = (type = "push"): Promise<number> => server.client.xlen(testTopic(identity, type));

async function records() {
  const filter = { organizationId: identity.organizationId, channelNumbers: [identity.number] };
  return (await quarantine.list(filter, { limit: 200, offset: 0 })).records;
}

describe("a delivery", () => {
  it("returns the outcome of each item, in order", async () => {
    const send = open({ itemsPath: "$" });
    const outcome = createOutcome(await send([{ id: "a" }, { no: 1 }, { id: "a" }, { id: "b" }]));
    expect(outcome).toMatchObject({ received: 4, published: 2, duplicates: 1, quarantined: 1 });
    expect(outcome.events.map(({ id, status }) => [id, status])).toEqual([
      ["a", "published"],
      ["a", "duplicate"],
      ["b", "published"],
    ]);
    expect(outcome.events[1]?.entryId).toBe(outcome.events[0]?.entryId);
    expect(await records()).toMatchObject([{ id: outcome.quarantine[0]?.id, item: 1, reason: "id_missing" }]);
    expect(results).toEqual([{ kind: "accepted", outcome }]);
  });

  it("can be published for one event definition and quarantined for another event definition", async () => {
    const send = open({}, [
      { type: "push", idPath: "$.id" },
      { type: "b", idPath: "$.no" },
      { type: "c", idPath: "$.no" },
    ]);
    const outcome = createOutcome(await send({ id: "a" }));
    expect(outcome).toMatchObject({ received: 1, published: 1, quarantined: 1 });
    expect(await records()).toMatchObject([{ item: null, definitions: ["b", "c"] }]);
  });

  it("is accepted without a write if it has no items", async () => {
    expect(createOutcome(await open({ itemsPath: "$" })([]))).toMatchObject({
      received: 0,
      events: [],
      quarantine: [],
    });
    expect([await length(), await records()]).toEqual([0, []]);
  });

  it("with too many items is rejected as a whole", async () => {
    const result = await open({ itemsPath: "$" })(Array.from({ length: 1001 }, (_, id) => ({ id })));
    expect([result.kind, await length(), await records()]).toEqual(["tooManyItems", 0, []]);
  });
});

describe("a delivery whose signature does not cover its id and type", () => {
  const secrets = [{ value: "k" }];
  const verification = { scheme: "hmac", name: "x-sig", bindDedupe: "signedBytes" } as const;
  const definitions = ["push", "ping"].map((type) => ({
    type,
    typePath: "$headers['x-event']",
    idPath: "$headers['x-id']",
  }));
  const signed = (body: string, id: string, type = "push") => ({
    "x-sig": createHmac("sha256", "k").update(body).digest("hex"),
    "x-id": id,
    "x-event": type,
  });

  it("is quarantined as a replay if the same bytes arrive again with another id or type", async () => {
    const send = open({ verification, secrets }, definitions);
    const of = async (id: string, type?: string, body = "{}") =>
      createOutcome(await send(body, signed(body, id, type)));
    expect(await of("1")).toMatchObject({ published: 1 });
    expect(await of("1")).toMatchObject({ published: 0, duplicates: 1, quarantined: 0 });
    for (const [id, type] of [
      ["2", "push"],
      ["3", "push"],
      ["1", "ping"],
    ] as const) {
      expect(await of(id, type)).toMatchObject({
        published: 0,
        duplicates: 0,
        quarantine: [{ reason: "replayed" }],
      });
    }
    expect(await of("4", "push", "[]")).toMatchObject({ published: 1 });
    expect([await length(), await length("ping")]).toEqual([2, 0]);
    expect((await records()).map(({ reason }) => reason)).toEqual(["replayed", "replayed", "replayed"]);
  });

  it("is quarantined as a conflict if it has a known id and differently signed data", async () => {
    const send = open({ verification, secrets }, definitions);
    await send('{"n":1}', signed('{"n":1}', "1"));
    expect(createOutcome(await send('{"n":2}', signed('{"n":2}', "1")))).toMatchObject({
      quarantine: [{ reason: "id_conflict" }],
    });
  });

  it("is published again after the deduplication window, or if deduplication is disabled", async () => {
    const send = open({ verification, secrets, dedupe: { windowSeconds: 0 } }, definitions);
    for (const id of ["1", "2"]) {
      expect(createOutcome(await send("{}", signed("{}", id)))).toMatchObject({ published: 1 });
    }
  });
});

describe("an event id that was already used with other data", () => {
  it("causes this event to be quarantined, and the rest of the delivery is published", async () => {
    const send = open({ itemsPath: "$", onInvalid: "reject" });
    await send([{ id: "a", v: 1 }]);
    const outcome = createOutcome(await send([{ id: "a", v: 2 }, { id: "b" }]));
    expect(outcome).toMatchObject({ received: 2, published: 1, duplicates: 0, quarantined: 1 });
    expect(await records()).toMatchObject([{ item: 0, reason: "id_conflict", definitions: ["push"] }]);
    expect(createOutcome(await send([{ id: "a", v: 2 }, { id: "b" }]))).toMatchObject({
      published: 0,
      duplicates: 1,
      quarantine: outcome.quarantine,
    });
    expect(await records()).toMatchObject([{ count: 2 }]);
  });

  it("makes the delivery fail if the event cannot be quarantined, and a retry by the sender completes the delivery", async () => {
    const full: Partial<WriterDeps> = {
      quarantine: {
        put: async () => {
          throw new UnavailableError("the quarantine is full");
        },
      },
    };
    const twice = [{ id: "a", v: 1 }, { id: "a", v: 2 }, { id: "b" }];
    await expect(open({ itemsPath: "$" }, undefined, full)(twice)).rejects.toThrow(UnavailableError);
    expect(results).toEqual([]);
    expect(createOutcome(await open({ itemsPath: "$" })(twice))).toMatchObject({
      published: 0,
      duplicates: 2,
      quarantined: 1,
    });
    expect(await length()).toBe(2);
  });
});

describe("a delivery whose schema validation takes too long", () => {
  const definitions = [{ type: "push", idPath: "$.id", schema: {} }];
  /** The schema never finishes compiling. */
  const validatorFor = () => new Promise<never>(() => {});

  it("is rejected as unavailable without a write, so that the sender retries", async () => {
    const send = open({}, definitions, {
      maxCheckMs: 1,
      normalize: (rules, delivery, ...more) =>
        normalize(rules, delivery, { validatorFor, newEventId: () => "fresh" }, ...more),
    });
    await expect(send({ id: "a" })).rejects.toThrow(UnavailableError);
    expect([await length(), await records(), results]).toEqual([0, [], []]);
  });

  it("is rejected without a write if it is a test delivery", async () => {
    const { channel, deps } = prepare({}, definitions, {
      maxCheckMs: 1,
      normalize: (rules, delivery, ...more) =>
        normalize(rules, delivery, { validatorFor, newEventId: () => "fresh" }, ...more),
    });
    const delivery = channel.sender
      .reject(
        {
          method: "POST",
          target: "/hooks/x",
          headers: {},
          body: Buffer.from('{"id":"a"}'),
          arrivedAtMs: Date.now(),
        },
        "not asked for",
      )
      .redacted();
    const { publishTest } = createWriter(deps);
    await expect(publishTest(channel, delivery, { signal })).rejects.toThrow(UnavailableError);
    expect([await length(), await records()]).toEqual([0, []]);
  });

  it("is rejected after four seconds, before most senders give up", async () => {
    const waits: (number | undefined)[] = [];
    const send = open({}, definitions, {
      normalize: (_rules, _delivery, _only, maxWaitMs) => {
        waits.push(maxWaitMs);
        return Promise.reject(new UnavailableError("enough"));
      },
    });
    await expect(send({ id: "a" })).rejects.toThrow(UnavailableError);
    expect(waits).toEqual([4_000]);
  });
});

describe("a delivery that needs two Redis calls, to publish and to quarantine", () => {
  it("has a single deadline for the two calls", async () => {
    const times: (number | undefined)[] = [];
    const publish = testPublish(redis);
    const send = open({ itemsPath: "$" }, undefined, {
      publish: (batch, options) => {
        times.push(options.sinceMs);
        return publish(batch, options);
      },
      quarantine: {
        put: (channel, write, options) => {
          times.push(options.sinceMs);
          return quarantine.put(channel, write, options);
        },
      },
    });
    const twice = [
      { id: "a", v: 1 },
      { id: "a", v: 2 },
    ];
    expect(createOutcome(await send(twice))).toMatchObject({ published: 1, quarantined: 1 });
    expect(times).toEqual([expect.any(Number), times[0]]);
    const longAgo = { signal, sinceMs: performance.now() - 2 * CEILING_MS };
    const { delivery } =
      (await quarantine.find(identity.organizationId, (await records())[0]?.id ?? "")) ?? {};
    if (!delivery) throw new Error("nothing is kept");
    await expect(quarantine.put(identity, { delivery, items: [kept] }, longAgo)).rejects.toThrow(
      UnavailableError,
    );
  });
});

const kept = {
  failure: { item: 0, reason: "id_missing", detail: "none", definitions: [] },
  keep: "all",
} as const;

describe("the settings of a channel for invalid items", () => {
  it("can reject a whole delivery without a write if one item is invalid", async () => {
    const result = await open({ itemsPath: "$", onInvalid: "reject" })([{ id: "a" }, {}, { id: "b" }]);
    expect(result).toMatchObject({ kind: "rejected", failures: [{ item: 1, reason: "id_missing" }] });
    expect([await length(), await records()]).toEqual([0, []]);
  });

  it("can reject items that match no event definition, and still quarantine items without an id", async () => {
    const definitions = [{ type: "push", typePath: "$.type", idPath: "$.id" }];
    const send = open({ onNoMatch: "reject" }, definitions);
    expect(await send({ type: "other" })).toMatchObject({
      kind: "rejected",
      failures: [{ reason: "no_match" }],
    });
    expect(await records()).toEqual([]);
    expect(createOutcome(await send({ type: "push" })).quarantine).toMatchObject([{ reason: "id_missing" }]);
  });
});

describe("an unverified delivery", () => {
  const config: Parameters<typeof open>[0] = {
    verification: { scheme: "hmac", name: "X-Signature" },
    secrets: [{ value: "k" }],
  };
  const sign = (secret: string, text: string) => ({
    "x-signature": createHmac("sha256", secret).update(text).digest("hex"),
  });

  it("is neither parsed nor published", async () => {
    const send = open(config);
    expect(await send('{"id":"a"}', sign("wrong", '{"id":"a"}'))).toMatchObject({ kind: "unverified" });
    expect(await send("{", {})).toMatchObject({ kind: "unverified" });
    expect(await length()).toBe(0);
    expect(createOutcome(await send('{"id":"a"}', sign("k", '{"id":"a"}')))).toMatchObject({ published: 1 });
  });

  it("is stored in quarantine as a sample at most every ten seconds, without its signature", async () => {
    const send = open(config);
    const headers = { ...sign("wrong", "{}"), "x-other": "1" };
    const startMs = Date.now();
    for (const afterMs of [0, 1, 9_999]) await send("{}", headers, startMs + afterMs);
    await until(async () => (await records()).length > 0);
    const [record] = await records();
    expect(record).toMatchObject({ item: null, reason: "signature_invalid", count: 1 });
    const found = await quarantine.find(identity.organizationId, record?.id ?? "");
    expect(found?.delivery).toMatchObject({ headers: { "x-other": "1" }, query: { a: "1" } });
    expect(JSON.stringify(found)).not.toContain(headers["x-signature"]);
    await send("{}", headers, startMs + 10_000);
    await until(async () => (await records())[0]?.count === 2);
  });

  it("is rejected with 401 even if the quarantine is unavailable", async () => {
    const put = async () => {
      throw new UnavailableError("Redis is away");
    };
    const send = open(config, undefined, { quarantine: { put } });
    expect(await send("{}")).toMatchObject({ kind: "unverified" });
  });
});
