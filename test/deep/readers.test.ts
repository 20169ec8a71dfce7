import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, it } from "vitest";
import type { ConsumerOptions } from "../../src/consumer/consumer.ts";
import { makeSubscription, startTestRedis } from "../consumer/support.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";

const server = opened(startTestRedis);

/** Handled events in order. */
type Ledger = (readonly [topic: string, data: number])[];

interface Reader extends AsyncDisposable {
  readonly process: ChildProcess;
}

/** Starts a reader process that appends to the ledger. */
async function startReader(
  ledger: Ledger,
  options: Partial<ConsumerOptions> & { readonly subscription: string },
  handleMs = 0,
): Promise<Reader> {
  const script = join(import.meta.dirname, "../consumer/reader-process.ts");
  const settings = JSON.stringify({ redis: server.url, deadAfterMs: 1_000, ...options });
  const child = spawn(process.execPath, [script, settings, String(handleMs)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ready = Promise.withResolvers<void>();
  createInterface(child.stdout).on("line", (line) => {
    const [topic = "", data] = line.split(" ");
    if (data === undefined) ready.resolve();
    else ledger.push([topic, Number(data)]);
  });
  await ready.promise;
  return {
    process: child,
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGKILL");
      await once(child, "exit");
    },
  };
}

/** Returns the numbers of each topic in the order in which they were first handled. */
function firstHandled(ledger: Ledger): ReadonlyMap<string, readonly number[]> {
  const topics = new Map<string, number[]>();
  for (const [topic, data] of ledger) {
    const numbers = topics.get(topic) ?? [];
    topics.set(topic, numbers);
    if (!numbers.includes(data)) numbers.push(data);
  }
  return topics;
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

describe("several readers of a subscription", () => {
  it("handle every event even if readers are killed", async () => {
    const subscription = await makeSubscription(server, 5);
    const ledger: Ledger = [];
    const options = { subscription: subscription.id, concurrency: 8 };
    let readers: Reader[] = [await startReader(ledger, options, 5), await startReader(ledger, options, 5)];
    for (let round = 0; round < 2; round++) {
      for (const topic of subscription.topics) await subscription.send(topic, round * 25, round * 25 + 25);
      const seen = ledger.length;
      await until(() => ledger.length > seen + 10);
      const [victim, ...others] = readers;
      await victim?.[Symbol.asyncDispose]();
      readers = [...others, await startReader(ledger, options, 5)];
    }
    await until(async () => ledger.length >= 250 && (await subscription.pending()) === 0);
    for (const reader of readers) await reader[Symbol.asyncDispose]();
    const handled = firstHandled(ledger);
    for (const topic of subscription.topics) {
      expect(handled.get(topic)?.toSorted((a, b) => a - b)).toEqual(upTo(50));
    }
  });
});

describe.concurrent("several readers in ordered mode", () => {
  it("keep the order of each topic while readers start, stop and are killed", async () => {
    const subscription = await makeSubscription(server, 6);
    const ledger: Ledger = [];
    const options = { subscription: subscription.id, ordered: true };
    const first = await startReader(ledger, options, 2);
    for (const topic of subscription.topics) await subscription.send(topic, 0, 30);
    await until(() => ledger.length > 40);
    await using second = await startReader(ledger, options, 2);
    await until(() => ledger.length > 80);
    await first[Symbol.asyncDispose]();
    for (const topic of subscription.topics) await subscription.send(topic, 30, 60);
    await using third = await startReader(ledger, options, 2);
    await until(async () => (await subscription.pending()) === 0 && new Set(ledger.map(String)).size === 360);
    // The remaining readers stop on SIGTERM.
    for (const { process } of [second, third]) {
      process.kill("SIGTERM");
      if (process.exitCode === null) await once(process, "exit");
    }
    for (const [, numbers] of firstHandled(ledger)) expect(numbers).toEqual(upTo(60));
  });

  it("keep the order of each key while readers start, stop and are killed", async () => {
    const subscription = await makeSubscription(server, 2);
    const ledger: Ledger = [];
    const options = { subscription: subscription.id, ordered: "key", concurrency: 4 } as const;
    const send = async (from: number, to: number): Promise<void> => {
      for (const topic of subscription.topics) await subscription.send(topic, from, to, (n) => `k${n % 5}`);
    };
    const first = await startReader(ledger, options, 2);
    await send(0, 60);
    await until(() => ledger.length > 40);
    await using second = await startReader(ledger, options, 2);
    await first[Symbol.asyncDispose]();
    await send(60, 120);
    await until(() => ledger.length > 120);
    await using third = await startReader(ledger, options, 2);
    second.process.kill("SIGTERM");
    await until(async () => (await subscription.pending()) === 0 && new Set(ledger.map(String)).size === 240);
    third.process.kill("SIGTERM");
    for (const [, numbers] of firstHandled(ledger)) {
      for (const key of upTo(5)) {
        const ofKey = numbers.filter((n) => n % 5 === key);
        expect(ofKey).toEqual(upTo(120).filter((n) => n % 5 === key));
      }
    }
  });

  it("divide the topics so that each topic has only one reader", async () => {
    const subscription = await makeSubscription(server, 10);
    const seen = [new Map<string, number>(), new Map<string, number>()];
    const stop = new AbortController();
    const running = seen.map((topics) =>
      subscription.consumer<number>({ ordered: true }).run(
        (_, { topic }) => {
          topics.set(topic, (topics.get(topic) ?? 0) + 1);
        },
        { signal: stop.signal },
      ),
    );
    let sent = 0;
    await until(
      async () => {
        for (const topic of subscription.topics) await subscription.send(topic, sent, sent + 1);
        sent++;
        return seen.every(({ size }) => size >= 5);
      },
      { everyMs: 100 },
    );
    for (const topics of seen) topics.clear();
    for (const topic of subscription.topics) await subscription.send(topic, sent, sent + 3);
    await until(
      async () => (await subscription.pending()) === 0 && seen.flatMap((one) => [...one]).length >= 10,
    );
    stop.abort();
    await Promise.all(running);
    const [one = new Map(), other = new Map()] = seen;
    expect([...one.keys()].filter((topic) => other.has(topic))).toEqual([]);
  });

  it("retry a failing event before later events of its topic, without blocking other topics", async () => {
    const subscription = await makeSubscription(server, 2);
    const [broken = "", sound = ""] = subscription.topics;
    await subscription.send(broken, 0, 3);
    await subscription.send(sound, 0, 3);
    const handled: string[] = [];
    const stop = new AbortController();
    let isMended = false;
    const retry = { initialMs: 20, maxMs: 20, factor: 1, jitter: 0 };
    const running = subscription
      .consumer<number>({ ordered: true, retry, maxAttempts: 10_000, concurrency: 1 })
      .run(
        ({ data }, { topic }) => {
          if (topic === broken && data === 0 && !isMended) throw new Error("broken");
          handled.push(`${topic === broken ? "broken" : "sound"} ${data}`);
        },
        { signal: stop.signal },
      );
    await until(() => handled.length === 3);
    expect(handled).toEqual(["sound 0", "sound 1", "sound 2"]);
    isMended = true;
    await until(() => handled.length === 6);
    stop.abort();
    await running;
    expect(handled.slice(3)).toEqual(["broken 0", "broken 1", "broken 2"]);
  });
});
