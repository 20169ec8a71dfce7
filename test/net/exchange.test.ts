import type { Dispatcher } from "undici";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { exchange } from "../../src/net/exchange.ts";

const HOUR_MS = 3_600_000;
const LIMITS = { connectTimeoutMs: 10_000, headTimeoutMs: 30_000, idleTimeoutMs: 5_000 };

// Timers are faked, and the dispatcher below replaces the network.
beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

/** A call whose response the test controls. */
function startCall() {
  let handler: Dispatcher.DispatchHandler | undefined;
  const dispatcher = {
    dispatch(_: unknown, newHandler: Dispatcher.DispatchHandler) {
      handler = newHandler;
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
  const response = exchange(dispatcher, request, { limits: LIMITS, signal: new AbortController().signal });
  return {
    response,
    connection,
    connect: () => handler?.onRequestStart?.(controller, {}),
    sendHead: () => handler?.onResponseStart?.(controller, 200, {}, "OK"),
    send: (bytes: number) => handler?.onResponseData?.(controller, Buffer.alloc(bytes)),
  };
}

const timedOut = (phase: string) => ({
  name: "OutboundError",
  code: "timeout",
  message: expect.stringContaining(phase),
});

it("an HTTP exchange fails if connecting takes longer than its timeout", async () => {
  const { response } = startCall();
  const failure = expect(response).rejects.toMatchObject(timedOut("connecting took longer than 10000 ms"));
  vi.advanceTimersByTime(LIMITS.connectTimeoutMs);
  await failure;
});

it("an HTTP exchange fails if the response headers do not arrive within their timeout after connecting", async () => {
  const { response, connect, connection } = startCall();
  vi.advanceTimersByTime(LIMITS.connectTimeoutMs - 1);
  connect();
  vi.advanceTimersByTime(LIMITS.headTimeoutMs - 1);
  expect(connection.reason).toBeNull();
  const failure = expect(response).rejects.toMatchObject(timedOut("waiting for the response headers"));
  vi.advanceTimersByTime(1);
  await failure;
  expect(connection.reason).not.toBeNull();
});

it("an HTTP exchange fails if no more of the body arrives within the idle timeout", async () => {
  const { response, connect, connection, send, sendHead } = startCall();
  connect();
  sendHead();
  const { body } = await response;
  for (let piece = 0; piece < 3; piece++) {
    vi.advanceTimersByTime(LIMITS.idleTimeoutMs - 1);
    send(10);
    expect(await body.read()).toHaveLength(10);
  }
  expect(connection.reason).toBeNull();
  const failure = expect(body.read()).rejects.toMatchObject(
    timedOut("waiting for more of the response body"),
  );
  vi.advanceTimersByTime(LIMITS.idleTimeoutMs);
  await failure;
});

it("an HTTP exchange pauses the connection and the idle timeout while the caller does not read the body", async () => {
  const { response, connect, connection, send, sendHead } = startCall();
  connect();
  sendHead();
  const { body } = await response;
  send(1024 * 1024);
  expect(connection.paused).toBe(true);
  vi.advanceTimersByTime(HOUR_MS);
  expect(await body.read()).toHaveLength(1024 * 1024);
  expect(connection).toMatchObject({ paused: false, reason: null });
  // The idle timeout applies again while the reader waits.
  const failure = expect(body.read()).rejects.toMatchObject(
    timedOut("waiting for more of the response body"),
  );
  vi.advanceTimersByTime(LIMITS.idleTimeoutMs);
  await failure;
});
