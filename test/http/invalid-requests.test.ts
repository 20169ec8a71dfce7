import { once } from "node:events";
import { connect } from "node:net";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { createApp } from "../../src/app.ts";
import { type Listener, startListener } from "../../src/gateway/listener.ts";
import { createHealth } from "../../src/http/health.ts";
import type { InvalidRequest } from "../../src/http/invalid-requests.ts";
import { createMetrics } from "../../src/metrics.ts";
import { createTestReceive, pushChannel } from "../ingest/receive-support.ts";
import { isDeepRun } from "../support/deep-run.ts";

const MIB = 1024 * 1024;
const OUTCOME = {
  received: 1,
  published: 1,
  duplicates: 0,
  ignored: 0,
  quarantined: 0,
  events: [],
  quarantine: [],
};
const metrics = createMetrics({ includeProcessMetrics: false, channels: 0 });

describe.each([
  ["the fast path", true],
  ["node:http", false],
])("requests that are no valid HTTP, on %s", (_, hookFastPath) => {
  let listener: Listener;
  let invalid: InvalidRequest[];
  let received: number;
  beforeEach(async () => {
    invalid = [];
    received = 0;
    const receiveHook = createTestReceive(
      () => {
        received++;
        return { kind: "accepted", outcome: OUTCOME };
      },
      { findChannel: (id) => (id === "ch_1" ? pushChannel({ maxBodyBytes: MIB }, "org_1") : undefined) },
    );
    const health = { metrics, metricsToken: undefined, checks: [] };
    const app = await createApp({ clock: Date.now, health, receiveHook, api: undefined });
    listener = await startListener(
      { host: "127.0.0.1", port: 0, hookFastPath, maxHeaderBytes: 16_384 },
      createHealth(health).fetch,
      { onInvalid: (request) => void invalid.push(request) },
    );
    listener.serve(app);
  });
  afterEach(() => listener[Symbol.asyncDispose]());

  /** Sends text and returns everything that is received until the gateway closes the connection. */
  async function exchange(text: string, port = listener.port): Promise<string> {
    const socket = connect(port, "127.0.0.1");
    let answer = "";
    socket.setEncoding("latin1").on("data", (piece) => {
      answer += piece;
    });
    socket.on("error", () => {});
    socket.write(text);
    await once(socket, "close");
    return answer;
  }

  const POST = "POST /hooks/ch_1 HTTP/1.1\r\n";

  it.each([
    ["with headers above the limit", `${POST}Host: a\r\nX-Long: ${"x".repeat(20_000)}\r\n\r\n`, 431],
    ["with a target above the limit", `GET /${"x".repeat(20_000)} HTTP/1.1\r\nHost: a\r\n\r\n`, 431],
    ["with a control character in a header", `${POST}Host: a\r\nX-A: a\u0001b\r\n\r\n`, 400],
    ["with two content lengths", `${POST}Host: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}`, 400],
    [
      "with a content length and chunks",
      `${POST}Host: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
    ],
    ["with a broken chunk", `${POST}Host: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n`, 400],
    ["that are a TLS handshake", "\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003", 400],
    ["with an unknown method", "BREW /hooks/ch_1 HTTP/1.1\r\nHost: a\r\n\r\n", 400],
    ["without a host", `${POST}Content-Length: 0\r\n\r\n`, 400],
    [
      "with an expectation that no server knows",
      `${POST}Host: a\r\nExpect: magic\r\nContent-Length: 0\r\n\r\n`,
      417,
    ],
    ["with an invalid host", `${POST}Host: a b\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`, 400],
    [
      "with a host that contains a path",
      `${POST}Host: a/b\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
      400,
    ],
    [
      "with a backslash in their target",
      "POST /hooks\\ch_1 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
      400,
    ],
  ])("receive an error body and are reported: %s", async (_name, text, status) => {
    const [head = "", body = ""] = (await exchange(text)).split("\r\n\r\n");
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(JSON.parse(body)).toEqual({ code: expect.any(String), message: expect.any(String) });
    const [, id] = /^x-request-id: (\S+)$/im.exec(head) ?? [];
    expect(invalid).toMatchObject([{ status, requestId: id }]);
    expect(head).toMatch(/^content-type: application\/json/im);
    expect(received).toBe(0);
  });

  it("do not append an error to a response that is partly sent", async () => {
    const first = `${POST}Host: a\r\nContent-Length: 2\r\n\r\n{}`;
    const answer = await exchange(`${first}nonsense\r\n\r\n`);
    expect(answer.match(/HTTP\/1\.1 \d+/g)?.at(-1)).toBe("HTTP/1.1 400");
    for (const part of answer.split("HTTP/1.1 ").slice(1)) expect(part).toMatch(/\r\n\r\n\{.*\}$/s);
  });

  it.each([
    "/x/../hooks/ch_1",
    "/%68ooks/ch_1",
    "/./hooks/ch_1",
  ])("do not reach a channel by another spelling of its address: %s", async (target) => {
    const request = `POST ${target} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}`;
    expect(await exchange(request)).toMatch(/^HTTP\/1\.1 404 /);
    expect(received).toBe(0);
  });

  /**
   * Sends a request as nginx does by default: over HTTP/1.0, the whole body first. If that fails, it responds with 502, even if the
   * response to the request has arrived.
   */
  async function sendLikeNginx(target: string, bytes: number): Promise<string> {
    const socket = connect(listener.port, "127.0.0.1").pause();
    let answer = "";
    socket.setEncoding("latin1").on("data", (piece) => {
      answer += piece;
    });
    const closed = once(socket, "close").catch(() => {});
    const head = `POST ${target} HTTP/1.0\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${bytes}\r\n\r\n`;
    let error: unknown;
    await new Promise<void>((resolve) => {
      socket.on("error", (failure) => {
        error = failure;
        resolve();
      });
      socket.write(head + "x".repeat(bytes), () => resolve());
    });
    if (error !== undefined) return `502 (${error})`;
    socket.resume();
    await closed;
    return answer.slice("HTTP/1.1 ".length, "HTTP/1.1 ".length + 3);
  }

  it.each([
    ["413 for a body that is too large", "/hooks/ch_1", "413"],
    ["404 for an unknown channel", "/hooks/ch_2", "404"],
    ["404 for an unknown path", "/elsewhere", "404"],
  ])("lose no early response behind a proxy that sends the whole body first: %s", async (_name, target, status) => {
    const attempts = isDeepRun ? 5 : 1;
    // The gateway reads the rest of a body for one second, in which a busy machine may not send all of it.
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    for (let i = 0; i < attempts; i++) expect(await sendLikeNginx(target, 12 * MIB)).toBe(status);
  });
});
