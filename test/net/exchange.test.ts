import type { Dispatcher } from "undici";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { exchange } from "../../src/net/exchange.ts";

const HOUR_MS = 3_600_000;
const LIMITS = { connectTimeoutMs: 10_000, headTimeoutMs: 30_000, idleTimeoutMs: 5_000 };

// Time passes only where the test lets it: the dispatcher below stands for the network.
beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

/** A call whose answer comes as the test says. */
function startCall() {
  let handler: Dispatcher.DispatchHandler | undefined;
  const dispatcher = {
    dispatch(_: unknown, given: Dispatcher.DispatchHandler) {
      handler = given;
      return true;
    },
  } as unknown as Dispatcher;
  const connection = {
    paused: false,
    reason: null as Error | null,
    pause() {
      this.paused = true;
    },
    resume() {
      this.paused = false;
    },
    abort(reason: Error) {
      this.reason = reason;
    },
  };
  const controller = connection as unknown as Dispatcher.DispatchController;
  const request = { method: "GET", url: "http://example.com/", headers: {} };
  const answer = exchange(dispatcher, request, { limits: LIMITS, signal: new AbortController().signal });
  return {
    answer,
    connection,
    connect: () => handler?.onRequestStart?.(controller, {}),
    sendHead: () => handler?.onResponseStart?.(controller, 200, {}, "OK"),
    send: (bytes: number) => handler?.onResponseData?.(controller, Buffer.alloc(bytes)),
  };
}

const timedOut = (what: string) => ({
  name: "OutboundError",
  code: "timeout",
  message: expect.stringContaining(what),
});

it("a connection is waited for as long as its limit says", async () => {
  const { answer } = startCall();
  const failure = expect(answer).rejects.toMatchObject(timedOut("connecting took longer than 10000 ms"));
  vi.advanceTimersByTime(LIMITS.connectTimeoutMs);
  await failure;
});

it("the head of the answer is waited for from the moment of the connection", async () => {
  const { answer, connect, connection } = startCall();
  vi.advanceTimersByTime(LIMITS.connectTimeoutMs - 1);
  connect();
  vi.advanceTimersByTime(LIMITS.headTimeoutMs - 1);
  expect(connection.reason).toBeNull();
  const failure = expect(answer).rejects.toMatchObject(timedOut("waiting for the response headers"));
  vi.advanceTimersByTime(1);
  await failure;
  expect(connection.reason).not.toBeNull();
});

it("the next bytes are waited for anew after each piece of the body", async () => {
  const { answer, connect, connection, send, sendHead } = startCall();
  connect();
  sendHead();
  const { body } = await answer;
  for (let piece = 0; piece < 3; piece++) {
    vi.advanceTimersByTime(LIMITS.idleTimeoutMs - 1);
    send(10);
    expect(await body.read()).toHaveLength(10);
  }
  expect(connection.reason).toBeNull();
  const failure = expect(body.read()).rejects.toMatchObject(timedOut("waiting for more of the response body"));
  vi.advanceTimersByTime(LIMITS.idleTimeoutMs);
  await failure;
});

it("a slow reader is not told that the sender is late: the connection is paused until it reads on", async () => {
  const { answer, connect, connection, send, sendHead } = startCall();
  connect();
  sendHead();
  const { body } = await answer;
  send(1024 * 1024);
  expect(connection.paused).toBe(true);
  vi.advanceTimersByTime(HOUR_MS);
  expect(await body.read()).toHaveLength(1024 * 1024);
  expect(connection).toMatchObject({ paused: false, reason: null });
  // From here on the sender's time counts again.
  const failure = expect(body.read()).rejects.toMatchObject(timedOut("waiting for more of the response body"));
  vi.advanceTimersByTime(LIMITS.idleTimeoutMs);
  await failure;
});
