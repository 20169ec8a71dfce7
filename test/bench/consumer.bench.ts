/**
 * Measures reading in CPU time per event, of the reader and of Redis separately, with alternating rounds on one Redis.
 *
 * - Compares `inlet-consumer`, which acknowledges each event after its handler, with a bare XREADGROUP and XACK loop of batches.
 * - Compares a gateway that calls a handler on loopback with a bare loop of XREADGROUP, fetch and XACK of the same concurrency.
 * - Compares `inlet-consumer` and a handler with `ordered: "key"` and 1,000 keys with unordered ones.
 * - Measures the delay of events while 10,000 a second are appended.
 *
 * Fails if a goal is missed.
 *
 * usage: npm run bench:consumer [-- --rounds 8 --events 50000 --deliveries 5000]
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Redis } from "ioredis";
import { createConsumer } from "../../src/consumer/consumer.ts";
import { installApp } from "../support/channels.ts";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { startRedis } from "../support/redis.ts";
import { until } from "../support/until.ts";
import { lowerQuartile, median, microsEach, spreadOf } from "./cpu.ts";
import { readFlags } from "./flags.ts";
import { createGoals } from "./rounds.ts";

const flags = readFlags({ rounds: 8, events: 50_000, deliveries: 5_000 });
const CONCURRENCY = 64;
const BATCH = 256;
const BURST_PER_SECOND = 10_000;
const BURST_SECONDS = 5;
const LONG_MS = 300_000;
/** Minimum ratios of the CPU time per event of the bare loop to Inlet's. */
const GOALS = { reading: 0.8, handlers: 1.2 } as const;
/** Minimum ratio of the throughput with order by key to that without order. */
const KEYED_GOAL = 0.8;
const KEYS = 1_000;
const DATA = JSON.stringify({ order: 4711, state: "paid", text: "x".repeat(400) });

const goals = createGoals();
await using server = await startRedis();
const { client } = server;

const other = new Redis(server.port, "127.0.0.1", { protocol: 2 });
try {
  await compareReading();
  await compareOrders();
  await measureBurst();
  await compareHandlers();
} finally {
  other.disconnect();
  goals.tell();
}

async function fill(topic: string, count: number, keys = 0): Promise<void> {
  const attributes = ["specversion", "1.0", "id", "1", "source", "/s", "type", "order"];
  attributes.push("time", "2026-01-01T00:00:00.000Z");
  const content = ["datacontenttype", "application/json", "data", DATA];
  for (let at = 0; at < count; at += 1_000) {
    const pipeline = client.pipeline();
    for (let i = at; i < Math.min(count, at + 1_000); i++)
      pipeline.xadd(
        topic,
        "*",
        ...attributes,
        ...content,
        ...(keys > 0 ? ["partitionkey", `k${i % keys}`] : []),
      );
    await pipeline.exec();
  }
}

async function createGroup(topic: string, id: string): Promise<void> {
  await client.xgroup("CREATE", topic, id, "0", "MKSTREAM");
  await client.sadd(`inlet:sub:${id}`, topic);
}

async function compareReading(): Promise<void> {
  const bare: Figures[] = [];
  const ours: Figures[] = [];
  for (let round = 0; round <= flags.rounds; round++) {
    const topic = `events.bench.${round}`;
    await createGroup(topic, `bare${round}`);
    await createGroup(topic, `ours${round}`);
    await fill(topic, flags.events);
    const ofBare = await measure(process.pid, flags.events, () =>
      readBare(topic, `bare${round}`, flags.events, async () => {}),
    );
    const ofOurs = await measure(process.pid, flags.events, () => readOurs(`ours${round}`));
    // The first round warms up both readers.
    if (round > 0) bare.push(ofBare);
    if (round > 0) ours.push(ofOurs);
    await client.unlink(topic);
  }
  print(`${flags.events} events of ${DATA.length} B, one topic, ${flags.rounds} rounds, p25 (least–most)`);
  compare(["bare XREADGROUP + XACK loop", bare], ["inlet-consumer", ours], GOALS.reading);
}

async function readOurs(subscription: string): Promise<void> {
  let count = 0;
  const stop = new AbortController();
  await createConsumer({ redis: server.url, subscription, concurrency: CONCURRENCY }).run(
    async () => {
      if (++count === flags.events) stop.abort();
    },
    { signal: stop.signal },
  );
}

/** Measures from the first event to the last, because an ordered reader first waits for its lease. */
async function compareOrders(): Promise<void> {
  const perSecond = { unordered: [] as number[], key: [] as number[] };
  for (let round = 0; round <= flags.rounds; round++) {
    const topic = `events.bench.keys.${round}`;
    await createGroup(topic, `unordered${round}`);
    await createGroup(topic, `key${round}`);
    await fill(topic, flags.events, KEYS);
    for (const order of ["unordered", "key"] as const) {
      const figure = await readThroughput(`${order}${round}`, order === "key" ? "key" : false);
      if (round > 0) perSecond[order].push(figure);
    }
    await client.unlink(topic);
  }
  print(`\n${flags.events} events of ${KEYS} keys, ${CONCURRENCY} at once, ${flags.rounds} rounds, median`);
  const [unordered, keyed] = [median(perSecond.unordered), median(perSecond.key)];
  print(`  unordered ${unordered.toFixed(0)} events/s  ordered by key ${keyed.toFixed(0)} events/s`);
  goals.check("throughput, ordered by key : unordered", keyed / unordered, KEYED_GOAL);
}

async function readThroughput(subscription: string, ordered: false | "key"): Promise<number> {
  let count = 0;
  let startedAt = 0;
  const stop = new AbortController();
  await createConsumer({ redis: server.url, subscription, concurrency: CONCURRENCY, ordered }).run(
    async () => {
      if (count++ === 0) startedAt = performance.now();
      if (count === flags.events) stop.abort();
    },
    { signal: stop.signal },
  );
  return (flags.events * 1_000) / (performance.now() - startedAt);
}

/** The baseline reader: reads a batch, parses and handles each entry, and acknowledges all together. */
async function readBare(
  topic: string,
  group: string,
  count: number,
  handle: (data: string) => Promise<void>,
): Promise<void> {
  for (let done = 0; done < count; ) {
    const reply = (await other.xreadgroup(
      ...(["GROUP", group, "r", "COUNT", BATCH, "STREAMS", topic, ">"] as const),
    )) as [string, [string, string[]][]][];
    const entries = reply[0]?.[1] ?? [];
    await Promise.all(
      entries.map(([, fields]) => {
        const data = fields.at(-1) ?? "";
        JSON.parse(data);
        return handle(data);
      }),
    );
    await other.xack(topic, group, ...entries.map(([id]) => id));
    done += entries.length;
  }
}

/** Sender and reader share this process, so a reader in its own process would have shorter delays. */
async function measureBurst(): Promise<void> {
  const topic = "events.bench.burst";
  await createGroup(topic, "burst");
  const total = BURST_PER_SECOND * BURST_SECONDS;
  const lagsMs: number[] = [];
  const stop = new AbortController();
  const reading = createConsumer({ redis: server.url, subscription: "burst", concurrency: CONCURRENCY }).run(
    async (_, { entryId }) => {
      lagsMs.push(Date.now() - Number(entryId.split("-")[0]));
      if (lagsMs.length === total) stop.abort();
    },
    { signal: stop.signal },
  );
  const startedAt = performance.now();
  for (let sent = 0; sent < total; ) {
    const due = Math.min(total, ((performance.now() - startedAt) / 1_000) * BURST_PER_SECOND);
    const pipeline = client.pipeline();
    for (; sent < due; sent++) pipeline.xadd(topic, "*", "id", String(sent), "data", DATA);
    await pipeline.exec();
    await delay(2);
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  await reading;
  lagsMs.sort((a, b) => a - b);
  const at = (share: number): number => lagsMs[Math.floor((lagsMs.length - 1) * share)] ?? Number.NaN;
  print(`\nlag of one consumer, ${(total / seconds).toFixed(0)} events/s appended for ${BURST_SECONDS} s`);
  print(`  p50 ${at(0.5)} ms  p99 ${at(0.99)} ms  max ${at(1)} ms`);
}

async function compareHandlers(): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), "inlet-bench-"));
  const script = join(import.meta.dirname, "handler-sink.ts");
  const sink = spawn(process.execPath, [script], { stdio: ["ignore", "pipe", "inherit"] });
  const [port] = await once(sink.stdout, "data");
  const url = `http://127.0.0.1:${String(port).trim()}/`;
  try {
    await using gateway = await startGatewayProcess({
      INLET_DATA_DIR: dir,
      REDIS_URL: server.url,
      INLET_ALLOW_NETWORKS: "127.0.0.0/8",
      INLET_LOG_LEVEL: "warn",
    });
    const app = await installApp(gateway, [{ uid: "main", kind: "webhook", events: [{ type: "order" }] }]);
    const handler = { url, concurrency: CONCURRENCY };
    const { id, topics } = await gateway.api<{ id: string; topics: string[] }>(
      "POST",
      `/apps/${app.id}/events/subscribe`,
      { eventUid: "*", handler },
    );
    const path = `/apps/${app.id}/subscriptions/${id}`;
    const [topic = ""] = topics;
    await client.xgroup("CREATE", topic, "bare", "0", "MKSTREAM");
    const bare: Figures[] = [];
    const ours: Figures[] = [];
    for (let round = 0; round <= flags.rounds; round++) {
      await gateway.api("POST", `${path}/pause`, {});
      await fill(topic, flags.deliveries);
      await fetch(url, { method: "DELETE" });
      const ofBare = await measure(process.pid, flags.deliveries, () => postBare(topic, url));
      await fetch(url, { method: "DELETE" });
      const ofOurs = await measure(gateway.pid, flags.deliveries, async () => {
        await gateway.api("POST", `${path}/resume`, {});
        const isDone = async (): Promise<boolean> =>
          Number(await (await fetch(url)).text()) >= flags.deliveries;
        await until(isDone, { ceilingMs: LONG_MS, everyMs: 10 });
      });
      if (round > 0) bare.push(ofBare);
      if (round > 0) ours.push(ofOurs);
    }
    print(
      `\n${flags.deliveries} events to a handler on loopback, ${CONCURRENCY} at once, ${flags.rounds} rounds, p25 (least–most)`,
    );
    compare(["bare XREADGROUP + fetch + XACK loop", bare], ["gateway, signed", ours], GOALS.handlers);
    await compareHandlerOrders(gateway, url);
  } finally {
    sink.kill("SIGTERM");
    await rm(dir, { recursive: true, force: true });
  }
}

/** Measures from the first delivery to the last, because an ordered reader first waits for its lease. */
async function compareHandlerOrders(
  gateway: Pick<GatewayProcess, "api" | "origin">,
  url: string,
): Promise<void> {
  const countDelivered = async (): Promise<number> => Number(await (await fetch(url)).text());
  const perSecond = { unordered: [] as number[], key: [] as number[] };
  for (let round = 0; round <= flags.rounds; round++) {
    for (const order of ["unordered", "key"] as const) {
      const app = await installApp(gateway, [{ uid: "main", kind: "webhook", events: [{ type: "order" }] }]);
      const handler = { url, concurrency: CONCURRENCY, ordered: order === "key" ? order : false };
      const { id, topics } = await gateway.api<{ id: string; topics: string[] }>(
        "POST",
        `/apps/${app.id}/events/subscribe`,
        { eventUid: "*", handler },
      );
      const path = `/apps/${app.id}/subscriptions/${id}`;
      await gateway.api("POST", `${path}/pause`, {});
      await fill(topics[0] ?? "", flags.deliveries, KEYS);
      await fetch(url, { method: "DELETE" });
      await gateway.api("POST", `${path}/resume`, {});
      await until(async () => (await countDelivered()) > 0, { ceilingMs: LONG_MS, everyMs: 5 });
      const [before, startedAt] = [await countDelivered(), performance.now()];
      const isDone = async (): Promise<boolean> => (await countDelivered()) >= flags.deliveries;
      await until(isDone, { ceilingMs: LONG_MS, everyMs: 10 });
      const figure = ((flags.deliveries - before) * 1_000) / (performance.now() - startedAt);
      if (round > 0) perSecond[order].push(figure);
      await gateway.api("DELETE", path);
    }
  }
  const [unordered, keyed] = [median(perSecond.unordered), median(perSecond.key)];
  print(`\n${flags.deliveries} events of ${KEYS} keys to a handler, ${CONCURRENCY} at once, median`);
  print(`  unordered ${unordered.toFixed(0)} events/s  ordered by key ${keyed.toFixed(0)} events/s`);
  goals.check("throughput of a handler, ordered by key : unordered", keyed / unordered, KEYED_GOAL);
}

async function postBare(topic: string, url: string): Promise<void> {
  const waiting: (() => void)[] = [];
  let running = 0;
  await readBare(topic, "bare", flags.deliveries, async (body) => {
    while (running >= CONCURRENCY) await new Promise<void>((resolve) => waiting.push(resolve));
    running++;
    await (await fetch(url, { method: "POST", body })).arrayBuffer();
    running--;
    waiting.shift()?.();
  });
}

interface Figures {
  readonly micros: number;
  readonly redisMicros: number;
  readonly perSecond: number;
}

async function measure(pid: number, events: number, work: () => Promise<unknown>): Promise<Figures> {
  const startedAt = performance.now();
  const [micros = 0, redisMicros = 0] = await microsEach([pid, server.pid], events, work);
  return { micros, redisMicros, perSecond: (events * 1_000) / (performance.now() - startedAt) };
}

type Reader = readonly [name: string, rounds: readonly Figures[]];

function compare(bare: Reader, ours: Reader, goal: number): void {
  for (const [name, rounds] of [bare, ours]) {
    const [own, ofRedis] = (["micros", "redisMicros"] as const).map((key) =>
      spreadOf(rounds.map((round) => round[key])),
    );
    const perSecond = median(rounds.map((round) => round.perSecond)).toFixed(0);
    print(`  ${name.padEnd(36)} CPU ${own} µs  Redis ${ofRedis} µs  ${perSecond} events/s`);
  }
  const [baselineMicros, inletMicros] = [bare, ours].map(([, rounds]) =>
    lowerQuartile(rounds.map(({ micros }) => micros)),
  );
  goals.check(
    `CPU time per event, ${bare[0]} : ${ours[0]}`,
    (baselineMicros ?? 0) / (inletMicros ?? 1),
    goal,
  );
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
