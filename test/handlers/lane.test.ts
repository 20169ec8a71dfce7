import { describe, expect, it } from "vitest";
import type { PendingRetry } from "../../src/event/handler.ts";
import type { AttemptResult } from "../../src/handlers/attempt.ts";
import { type Lane, startLane } from "../../src/handlers/lane.ts";
import { createLog } from "../../src/log.ts";
import { openedBus } from "../bus/support.ts";
import { until } from "../support/until.ts";

const NOW_MS = Date.UTC(2026, 0, 1);
const HOUR_MS = 3_600_000;

const { server, redis } = openedBus();

let made = 0;

/** Creates a subscription with one event. Its handler responds 503, optionally with a time for the next attempt. */
async function startRefused(options: {
  readonly notBeforeMs?: number;
  /** Result of each attempt, instead of 503. */
  readonly result?: AttemptResult;
  readonly onFailing?: (isFailing: boolean) => void;
  readonly store: (job: PendingRetry, delayMs: number) => Promise<void>;
}) {
  const id = `sub_${++made}`;
  const topic = `events.o.apps.app.event_received.${id}.ch.t`;
  await server.client.xgroup("CREATE", topic, id, "0-0", "MKSTREAM");
  await server.client.sadd(`inlet:sub:${id}`, topic);
  await server.client.xadd(topic, "*", "id", "1", "data", "{}");
  const refused: AttemptResult = {
    kind: "refused",
    attempt: { at: new Date(NOW_MS).toISOString(), status: 503, code: "http", durationMs: 1 },
    isGone: false,
    isFinal: false,
    notBeforeMs: options.notBeforeMs,
  };
  const unexpected = async () => {
    throw new Error("nobody is gone, and nothing is dead");
  };
  const lane: Lane = startLane(
    {
      id,
      organizationId: "o",
      appId: "app",
      state: "active",
      secret: "whsec_",
      handler: { url: "https://handler.example/", timeoutMs: 1_000, concurrency: 1, ordered: false },
    } as Parameters<typeof startLane>[0],
    {
      redis,
      attempt: async () => options.result ?? refused,
      filter: () => "wanted",
      onIgnored: unexpected,
      retries: { add: options.store },
      backoffMs: () => 1_000,
      onFailing: (_, isFailing) => options.onFailing?.(isFailing),
      onGone: unexpected,
      onDead: unexpected,
      onLost: unexpected,
      watchGaps: () => undefined,
      observe() {},
      writeError: async () => {},
      clock: () => NOW_MS,
      log: createLog({ level: "silent" }),
      timing: { deadAfterMs: HOUR_MS, breakerMs: HOUR_MS },
    },
  );
  const pending = async () => Number((await server.client.xpending(topic, id))[0]);
  return { lane, pending, [Symbol.asyncDispose]: () => lane[Symbol.asyncDispose]() };
}

it("a handler that accepts the first event is no longer shown as failing, because a restart may have hidden its recovery", async () => {
  const failing: boolean[] = [];
  const attempt = { at: new Date(NOW_MS).toISOString(), status: 200, code: "ok", durationMs: 1 };
  await using accepted = await startRefused({
    result: { kind: "taken", attempt, rejected: new Set() },
    onFailing: (isFailing) => void failing.push(isFailing),
    store: async () => {},
  });
  await until(async () => (await accepted.pending()) === 0 && failing.length > 0);
  expect(failing).toEqual([false]);
});

describe("an event that its handler rejects", () => {
  it("is acknowledged in Redis only after its retry has been stored", async () => {
    const asked = Promise.withResolvers<void>();
    const stored = Promise.withResolvers<void>();
    await using refused = await startRefused({
      store() {
        asked.resolve();
        return stored.promise;
      },
    });
    await asked.promise;
    // An acknowledgement that does not wait would have been sent before these replies.
    for (let i = 0; i < 20; i++) expect(await refused.pending()).toBe(1);
    stored.resolve();
    await until(async () => (await refused.pending()) === 0);
  });

  it("stays unacknowledged in Redis if its retry cannot be stored, and is delivered again", async () => {
    let asked = 0;
    await using refused = await startRefused({
      async store() {
        if (++asked === 1) throw new Error("Redis is full");
      },
    });
    await until(() => asked === 2);
    await until(async () => (await refused.pending()) === 0);
  });

  it.each([
    ["its backoff if the handler requests no time", undefined, 1_000],
    ["its backoff if the handler requests an earlier time", NOW_MS + 10, 1_000],
    ["the time that the handler requests", NOW_MS + 60_000, 60_000],
  ])("is retried after %s", async (_, notBeforeMs, expected) => {
    const delays: number[] = [];
    await using refused = await startRefused({
      ...(notBeforeMs === undefined ? {} : { notBeforeMs }),
      store: async (_job, delayMs) => void delays.push(delayMs),
    });
    await until(async () => (await refused.pending()) === 0 && delays.length > 0);
    expect(delays).toEqual([expected]);
  });
});
