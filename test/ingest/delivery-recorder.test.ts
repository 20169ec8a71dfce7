import { expect, test } from "vitest";
import { createDeliveryRecords, type NewDeliveryRecord } from "../../src/bus/deliveries/delivery-records.ts";
import type { IngestResult } from "../../src/event/ingest.ts";
import type { CompiledChannel } from "../../src/ingest/compile-channel.ts";
import { createDeliveryRecorder, type DeliveryRecorderDeps } from "../../src/ingest/delivery-recorder.ts";
import { UnavailableError } from "../../src/lib/errors.ts";
import { createLog } from "../../src/log.ts";
import { createMetrics } from "../../src/metrics.ts";
import { compileSender } from "../../src/verify/verify.ts";
import { openedBus, testChannel } from "../bus/support.ts";
import { moveMonotonicClock } from "../support/moved-clock.ts";
import { opened } from "../support/opened.ts";

const { redis } = openedBus();
const records = opened(() => createDeliveryRecords({ redis }));

const sender = compileSender(
  {
    verification: { scheme: "none" },
    secrets: [],
    allowedAddresses: undefined,
    shadow: false,
    handshakes: [],
    methods: ["POST"],
    allowHandshakes: "never",
    readAs: undefined,
    answer: "outcome",
    reading: { forms: "fields" },
    paths: { typePath: undefined, idPath: undefined, itemsPath: undefined },
  },
  {
    hooksUrl: "https://hooks.example",
    keys: { get: () => [], renew: async () => undefined },
    onShadowed: () => {},
  },
);

/** The parts of a channel that the recorder uses. */
const channelOf = (identity = testChannel()) =>
  ({ identity, sender, sampling: { nextAtMs: 0, nextFailedAtMs: 0 } }) as unknown as CompiledChannel;

function open(instead: Partial<DeliveryRecorderDeps> = {}) {
  const metrics = createMetrics();
  const recorder = createDeliveryRecorder({
    records,
    metrics,
    clock: Date.now,
    log: createLog({ level: "silent" }),
    explain: async () => [],
    isOverLimit: () => false,
    ...instead,
  });
  return {
    recorder,
    async dropped(cause: string) {
      const { values } = (await metrics.registry.getMetricsAsJSON()).find(
        ({ name }) => name === "inlet_delivery_records_dropped_total",
      ) ?? { values: [] };
      return values.find(({ labels }) => labels.cause === cause)?.value ?? 0;
    },
  };
}

const published: IngestResult = {
  kind: "accepted",
  outcome: {
    received: 1,
    published: 1,
    duplicates: 0,
    ignored: 0,
    quarantined: 0,
    events: [],
    quarantine: [],
  },
};
const quarantined: IngestResult = {
  kind: "accepted",
  outcome: {
    received: 1,
    published: 0,
    duplicates: 0,
    ignored: 0,
    quarantined: 1,
    events: [],
    quarantine: [{ id: "qr_1", reason: "no_match" }],
  },
};

function requestOf(text: string | Buffer, arrivedAtMs: number) {
  const values = Object.create(null);
  const body = typeof text === "string" ? Buffer.from(text) : text;
  const delivery = { method: "POST", headers: values, query: values, body, arrivedAtMs };
  return { delivery, request: { ...delivery, target: "/" } };
}

async function statusesOf({ identity }: CompiledChannel): Promise<readonly string[]> {
  const listed = await records.list(identity.organizationId, [identity.number]);
  return listed.map(({ status }) => status);
}

test("the delivery recorder stores one delivery per second and channel, preferably a delivery that was not published", async () => {
  await using opening = new AsyncDisposableStack();
  const { recorder } = open();
  opening.use(recorder);
  const [channel, quiet] = [channelOf(), channelOf()];
  const startMs = Date.now();
  for (let n = 0; n < 500; n++) {
    const { delivery, request } = requestOf("{}", startMs + n);
    recorder.settled(channel, delivery, n === 300 ? quarantined : published, request);
  }
  const { delivery, request } = requestOf("{}", startMs);
  recorder.settled(quiet, delivery, published, request);
  await recorder.flush();
  expect(await statusesOf(channel)).toEqual(["quarantined"]);
  expect(await statusesOf(quiet)).toEqual(["published"]);
  const later = requestOf("{}", startMs + 1_500);
  recorder.settled(channel, later.delivery, published, later.request);
  await recorder.flush();
  expect(await statusesOf(channel)).toEqual(["quarantined", "published"]);
});

test("the delivery recorder continues to store deliveries after the clock was set back", async () => {
  await using opening = new AsyncDisposableStack();
  const { recorder } = open();
  opening.use(recorder);
  const channel = channelOf();
  for (const atMs of [Date.now(), Date.now() - 3_600_000]) {
    const { delivery, request } = requestOf("{}", atMs);
    recorder.settled(channel, delivery, published, request);
    await recorder.flush();
  }
  expect(await statusesOf(channel)).toHaveLength(2);
});

test("the delivery recorder limits its queue while Redis does not accept records, and counts the records that it drops", async () => {
  const held = Promise.withResolvers<number>();
  // The rejection is handled later. Until then it must not count as unhandled.
  held.promise.catch(() => {});
  let asked = 0;
  let most = 0;
  const write = (some: readonly NewDeliveryRecord[]) => {
    asked += some.length;
    most = Math.max(most, some.length);
    return held.promise;
  };
  const { recorder, dropped } = open({ records: { write } });
  const nowMs = Date.now();
  const body = Buffer.alloc(40_000);
  // Each call returns at once, so it cannot wait for a write that never ends.
  for (let n = 0; n < 1_000; n++) {
    const { delivery, request } = requestOf(body, nowMs);
    recorder.settled(channelOf(), delivery, published, request);
  }
  const flushed = recorder.flush();
  expect(await dropped("full")).toBeGreaterThan(700);
  held.reject(new UnavailableError("away"));
  await Promise.allSettled([flushed]);
  // One write has a maximum number of bytes.
  expect(most).toBeGreaterThan(0);
  expect(most * 40_000).toBeLessThanOrEqual(1024 * 1024);
  await recorder[Symbol.asyncDispose]();
  expect(await dropped("unavailable")).toBe(asked);
});

test("the delivery recorder stores the records of an organization even when another organization floods thousands of channels", async () => {
  await using opening = new AsyncDisposableStack();
  const { recorder, dropped } = open();
  opening.use(recorder);
  const organizationId = testChannel().organizationId;
  const nowMs = Date.now();
  const bodies = {
    none: Buffer.alloc(0),
    some: Buffer.alloc(50_000, "x"),
    large: Buffer.alloc(100_000, "x"),
  };
  const send = (channel: CompiledChannel, body: Buffer) => {
    const { delivery, request } = requestOf(body, nowMs);
    recorder.settled(channel, delivery, published, request);
  };
  const flood = (body: Buffer) => {
    for (let n = 0; n < 1_000; n++) send(channelOf({ ...testChannel(), organizationId }), body);
  };
  flood(bodies.large);
  flood(bodies.none);
  const quiet = Array.from({ length: 3 }, () => channelOf());
  for (const channel of quiet) send(channel, bodies.some);
  flood(bodies.large);
  const others = await dropped("full");
  expect(others).toBeGreaterThan(2_500);
  await recorder.flush();
  for (const channel of quiet) expect(await statusesOf(channel)).toEqual(["published"]);
});

test("the delivery recorder stores no delivery of an organization over its storage limit, and omits bodies that are too large", async () => {
  await using opening = new AsyncDisposableStack();
  const full = channelOf();
  const { recorder, dropped } = open({ isOverLimit: (id) => id === full.identity.organizationId });
  opening.use(recorder);
  const channel = channelOf();
  const { delivery, request } = requestOf(Buffer.alloc(200_000, "x"), Date.now());
  recorder.settled(full, delivery, published, request);
  recorder.settled(channel, delivery, published, request);
  await recorder.flush();
  expect([await dropped("overLimit"), await statusesOf(full)]).toEqual([1, []]);
  const { organizationId, number } = channel.identity;
  const [{ id } = { id: "" }] = await records.list(organizationId, [number]);
  const found = await records.find(organizationId, id);
  expect([found?.body, found?.record.bodyBytes]).toEqual([null, 200_000]);
});

test("the delivery recorder drops a record that waited too long, because a privacy deletion may already have covered it", async () => {
  await using opening = new AsyncDisposableStack();
  using clock = moveMonotonicClock();
  const { recorder, dropped } = open({
    explain: async () => {
      clock.ahead(6_000);
      return [];
    },
  });
  opening.use(recorder);
  const channel = channelOf();
  const { delivery, request } = requestOf("{}", Date.now());
  recorder.settled(channel, delivery, published, request);
  await recorder.flush();
  expect([await dropped("late"), await statusesOf(channel)]).toEqual([1, []]);
});
