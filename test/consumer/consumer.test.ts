import { CloudEvent } from "cloudevents";
import { describe, expect, it, vi } from "vitest";
import { toCloudEvent } from "../../src/consumer/cloudevents.ts";
import {
  type ConsumedEvent,
  type ConsumerOptions,
  type ConsumerProblem,
  createConsumer,
} from "../../src/consumer/consumer.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";
import { makeSubscription, startTestRedis } from "./support.ts";

const server = opened(startTestRedis);

const failed = (what: string): never => {
  throw new Error(what);
};

const soon = { initialMs: 5, maxMs: 5, factor: 1, jitter: 0 };

describe("consumer.run", () => {
  it("delivers each event of several topics once, and acknowledges handled events", async () => {
    const subscription = await makeSubscription(server, 100);
    for (const topic of subscription.topics) await subscription.send(topic, 0, 20);
    const stop = new AbortController();
    const handled = new Map<string, number>();
    const running = subscription.consumer<number>().run(
      ({ id }) => {
        handled.set(id, (handled.get(id) ?? 0) + 1);
      },
      { signal: stop.signal },
    );
    await until(() => handled.size === 2_000);
    stop.abort();
    await running;
    expect([...handled.values()].filter((times) => times !== 1)).toEqual([]);
    expect(await subscription.pending()).toBe(0);
  });

  it("delivers events that are valid for the cloudevents npm package, and provides the original text of their data", async () => {
    const subscription = await makeSubscription(server);
    const [topic = ""] = subscription.topics;
    const fields = [
      "specversion",
      "1.0",
      "id",
      "1",
      "source",
      "/s",
      "type",
      "t",
      "time",
      "2026-01-02T03:04:05.006Z",
    ];
    await server.client.xadd(
      topic,
      "*",
      ...fields,
      "datacontenttype",
      "application/json",
      "data",
      '{"n":1.0e2}',
      "ext",
      "x",
    );
    await server.client.xadd(
      topic,
      "*",
      ...fields.with(3, "2"),
      "datacontenttype",
      "text/plain",
      "data",
      "[1]",
    );
    await server.client.xadd(
      topic,
      "*",
      ...fields.with(3, "3"),
      "datacontenttype",
      "image/png",
      "data_base64",
      "AP8=",
    );
    await server.client.xadd(topic, "*", ...fields.with(3, "4"));
    const seen: [ConsumedEvent, string | undefined][] = [];
    const stop = new AbortController();
    await subscription.consumer({ concurrency: 1 }).run(
      (event, { text }) => {
        seen.push([event, text]);
        if (seen.length === 4) stop.abort();
      },
      { signal: stop.signal },
    );
    expect(seen.map(([{ data }, text]) => [data, text])).toEqual([
      [{ n: 100 }, '{"n":1.0e2}'],
      ["[1]", "[1]"],
      [Buffer.from([0, 255]), undefined],
      [undefined, undefined],
    ]);
    const [first] = seen;
    for (const [event] of seen) expect(Object.isFrozen(event)).toBe(true);
    expect(new CloudEvent(first?.[0] ?? {}).ext).toBe("x");
    expect(seen.map(([event]) => toCloudEvent(event).toJSON())).toMatchObject([
      { id: "1", time: "2026-01-02T03:04:05.006Z", data: { n: 100 }, ext: "x" },
      { id: "2", data: "[1]" },
      { id: "3", data_base64: "AP8=" },
      { id: "4" },
    ]);
  });

  it("retries a failed event, and moves it to dead letters after the last attempt", async () => {
    const subscription = await makeSubscription(server);
    const [topic = ""] = subscription.topics;
    await subscription.send(topic, 0, 3);
    const attempts: [number, number][] = [];
    const problems: ConsumerProblem[] = [];
    const stop = new AbortController();
    const running = subscription
      .consumer<number>({ maxAttempts: 3, retry: soon, onProblem: (problem) => problems.push(problem) })
      .run(
        ({ data = -1 }, { attempt }) => {
          attempts.push([data, attempt]);
          if (data === 1 && attempt === 1) throw new Error("once");
          if (data === 2) throw new Error("always");
        },
        { signal: stop.signal },
      );
    await until(async () => (await subscription.dead()).length === 1 && (await subscription.pending()) === 0);
    stop.abort();
    await running;
    expect(attempts.filter(([data]) => data > 0).sort()).toEqual([
      [1, 1],
      [1, 2],
      [2, 1],
      [2, 2],
      [2, 3],
    ]);
    expect(await subscription.dead()).toMatchObject([
      { attempts: "3", reason: "always", data: "2", "entry-id": expect.any(String) },
    ]);
    expect(problems.map(({ kind }) => kind).sort()).toEqual(["dead", "failed", "failed", "failed"]);
  });

  it.each([
    ["throws", () => failed("of onProblem")],
    ["rejects", async () => failed("of onProblem")],
  ])("continues and emits a Node.js process warning if the onProblem callback %s", async (_, onProblem) => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning);
    process.on("warning", onWarning);
    const subscription = await makeSubscription(server);
    const [topic = ""] = subscription.topics;
    await subscription.send(topic, 0, 4);
    const handled: number[] = [];
    const stop = new AbortController();
    const running = subscription.consumer<number>({ maxAttempts: 2, retry: soon, onProblem }).run(
      ({ data = -1 }) => {
        if (data === 1) failed("of the handler");
        handled.push(data);
      },
      { signal: stop.signal },
    );
    await until(async () => (await subscription.dead()).length === 1 && (await subscription.pending()) === 0);
    expect(handled.sort()).toEqual([0, 2, 3]);
    stop.abort();
    await running;
    process.off("warning", onWarning);
    const told = warnings.filter((warning) => "code" in warning && warning.code === "INLET_ON_PROBLEM");
    expect(told.map(({ message }) => message.split(": ")[0])).toEqual([
      'onProblem failed for the problem "failed"',
      'onProblem failed for the problem "dead"',
    ]);
  });

  it("warns of failed events by default, at most once in ten seconds, and reports the last error of its subscription", async () => {
    const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const subscription = await makeSubscription(server);
    const [topic = ""] = subscription.topics;
    await subscription.send(topic, 0, 3);
    const stop = new AbortController();
    const running = subscription
      .consumer({ maxAttempts: 2, retry: soon })
      .run(() => failed("of the handler"), { signal: stop.signal });
    await until(async () => (await subscription.dead()).length === 3);
    stop.abort();
    await running;
    const warnings = warn.mock.calls.map(([message, options]) => [
      message,
      (options as { code: string }).code,
    ]);
    warn.mockRestore();
    expect(warnings).toEqual([
      [
        expect.stringMatching(
          /^the handler failed for the event \d+-0 of .* \(attempt 1\), which is .*: Error: of the handler\n/,
        ),
        "INLET_FAILED",
      ],
      [expect.stringContaining("is now a dead letter"), "INLET_DEAD"],
    ]);
    expect(await server.client.hgetall(`inlet:sub:${subscription.id}:error`)).toEqual({
      at: expect.stringMatching(/^\d{4}-/),
      message: "of the handler",
    });
    expect(await server.client.pttl(`inlet:sub:${subscription.id}:error`)).toBeGreaterThan(6 * 86_400_000);
  });

  it("also reads topics that are added to the subscription later, once their consumer groups exist", async () => {
    const subscription = await makeSubscription(server);
    const seen: number[] = [];
    const stop = new AbortController();
    const running = subscription.consumer<number>().run(({ data = -1 }) => void seen.push(data), stop);
    const topic = `events.late.${subscription.id}`;
    await server.client.sadd(`inlet:sub:${subscription.id}`, topic);
    await subscription.send(subscription.topics[0] ?? "", 0, 1);
    await until(() => seen.includes(0));
    await subscription.send(topic, 1, 2);
    await server.client.xgroup("CREATE", topic, subscription.id, "0-0", "MKSTREAM");
    await until(() => seen.includes(1));
    stop.abort();
    await running;
  });

  it("continues if a topic is deleted during a blocking read and created again", async () => {
    const subscription = await makeSubscription(server);
    const [topic = ""] = subscription.topics;
    const seen: number[] = [];
    const problems: ConsumerProblem[] = [];
    const stop = new AbortController();
    const running = subscription
      .consumer<number>({ onProblem: (problem) => problems.push(problem) })
      .run(({ data = -1 }) => void seen.push(data), stop);
    await until(subscription.isAwaited);
    await server.client.del(topic);
    await subscription.send(topic, 0, 1);
    await server.client.xgroup("CREATE", topic, subscription.id, "0-0");
    await until(() => seen.includes(0));
    stop.abort();
    await running;
    expect(problems).toEqual([]);
  });

  it("waits for running handlers when it stops, and immediately releases events whose handler has not started", async () => {
    const subscription = await makeSubscription(server);
    const [topic = ""] = subscription.topics;
    await subscription.send(topic, 0, 50);
    const stop = new AbortController();
    const gate = Promise.withResolvers<void>();
    const first: number[] = [];
    const running = subscription.consumer<number>({ concurrency: 2, deadAfterMs: 60_000 }).run(
      async ({ data = -1 }) => {
        first.push(data);
        await gate.promise;
      },
      { signal: stop.signal },
    );
    await until(() => first.length === 2);
    stop.abort();
    gate.resolve();
    await running;
    expect([first, await subscription.pending()]).toEqual([[0, 1], 48]);
    const second: number[] = [];
    const again = new AbortController();
    // Released events are available at once, without waiting for deadAfterMs.
    const next = subscription
      .consumer<number>({ deadAfterMs: 60_000 })
      .run(({ data = -1 }) => void second.push(data), again);
    await until(() => second.length === 48);
    again.abort();
    await next;
    expect(second.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 48 }, (_, i) => i + 2));
  });

  it.concurrent("reports the address of an unreachable Redis without the password", async () => {
    const consumer = createConsumer({ redis: "redis://me:hidden@127.0.0.1:1", subscription: "sub_x" });
    const failure: unknown = await consumer.run(() => {}).catch((error: unknown) => error);
    expect(String(failure)).toContain("Redis at 127.0.0.1:1 cannot be reached");
    expect(String(failure)).toContain("ECONNREFUSED");
    expect(String(failure)).not.toContain("hidden");
  });

  it.concurrent("rejects an unknown subscription with an error that contains the subscription id", async () => {
    const consumer = createConsumer({ redis: server.url, subscription: "sub_unknown" });
    await Promise.all([
      expect(consumer.run(() => {})).rejects.toThrow("sub_unknown is unknown"),
      expect(consumer.events().next()).rejects.toThrow("sub_unknown is unknown"),
    ]);
  });

  it.concurrent("waits for the first topic if the subscription has no topics yet", async () => {
    await server.client.set("inlet:sub:sub_bare:known", "");
    const stop = new AbortController();
    const topic = "events.bare";
    const seen: number[] = [];
    const running = createConsumer<number>({ redis: server.url, subscription: "sub_bare" }).run(
      ({ data = -1 }) => void seen.push(data),
      { signal: stop.signal },
    );
    await server.client.xgroup("CREATE", topic, "sub_bare", "0-0", "MKSTREAM");
    await server.client.xadd(topic, "*", "specversion", "1.0", "id", "1", "data", "7");
    await server.client.sadd("inlet:sub:sub_bare", topic);
    await until(() => seen.includes(7));
    stop.abort();
    await running;
  });

  it("rejects invalid and unknown options by name before it connects", () => {
    const valid = { redis: "redis://h", subscription: "s" };
    expect(() => createConsumer({ ...valid, concurrency: 0 })).toThrow("concurrency");
    expect(() => createConsumer({ ...valid, redis: "" })).toThrow("redis");
    const misspelt = { ...valid, concurency: 2, orderd: true, retry: { maxMS: 1 } };
    expect(() => createConsumer(misspelt as object as ConsumerOptions)).toThrow(
      "unknown options: concurency, orderd, retry.maxMS",
    );
  });
});

describe("consumer.events", () => {
  it("acknowledges an event when the next event is requested, unless retry() was called", async () => {
    const subscription = await makeSubscription(server);
    const [topic = ""] = subscription.topics;
    await subscription.send(topic, 0, 3);
    const seen: [number | undefined, number][] = [];
    for await (const { event, attempt, retry } of subscription.consumer<number>({ retry: soon }).events()) {
      seen.push([event.data, attempt]);
      if (event.data === 1 && attempt === 1) retry();
      if (seen.length === 4) break;
    }
    expect(seen.toSorted()).toEqual([
      [0, 1],
      [1, 1],
      [1, 2],
      [2, 1],
    ]);
    // The loop ended without acknowledging its last event, so another reader can have it.
    expect(await subscription.pending()).toBe(1);
  });
});

describe("the option `when`", () => {
  it("keeps other events from the handler and from events(), and acknowledges them", async () => {
    const subscription = await makeSubscription(server);
    const [topic = ""] = subscription.topics;
    await subscription.send(topic, 0, 6);
    const stop = new AbortController();
    const handled: unknown[] = [];
    const consumer = subscription.consumer<number>({ when: ({ data }) => Number(data) % 2 === 1 });
    const running = consumer.run(({ data }) => void handled.push(data), { signal: stop.signal });
    await until(async () => handled.length === 3 && (await subscription.pending()) === 0);
    stop.abort();
    await running;
    expect(handled.toSorted()).toEqual([1, 3, 5]);
    await subscription.send(topic, 6, 10);
    for await (const { event } of consumer.events()) {
      handled.push(event.data);
      if (event.data === 9) break;
    }
    expect(handled.slice(3)).toEqual([7, 9]);
  });

  it("delivers an event again for which it throws, and rejects a JSON Schema", async () => {
    const subscription = await makeSubscription(server);
    await subscription.send(subscription.topics[0] ?? "", 0, 1);
    const stop = new AbortController();
    const problems: ConsumerProblem[] = [];
    const when = () => failed("no verdict");
    const options = {
      when,
      maxAttempts: 2,
      retry: soon,
      onProblem: (one: ConsumerProblem) => void problems.push(one),
    };
    const running = subscription.consumer(options).run(() => {}, { signal: stop.signal });
    await until(async () => (await subscription.dead()).length === 1);
    stop.abort();
    await running;
    expect(problems).toMatchObject([{ kind: "failed" }, { kind: "dead" }]);
    const schema = { when: {} } as unknown as Partial<ConsumerOptions>;
    expect(() => subscription.consumer(schema)).toThrow("when must be a function");
  });
});
