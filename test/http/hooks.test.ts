import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { HttpBindings } from "@hono/node-server";
import { Hono } from "hono";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Listener, startListener } from "../../src/gateway/listener.ts";
import { DRAIN_MS } from "../../src/http/close-gently.ts";
import type { ReceiveHook } from "../../src/http/hook-exchange.ts";
import { createHooks, getRoutePath } from "../../src/http/hooks.ts";
import { createTestReceive } from "../ingest/receive-support.ts";
import { until } from "../support/until.ts";

const askedFor: string[] = [];

/** Receives hooks of a gateway without channels. */
const receiveHook: ReceiveHook = createTestReceive(() => Promise.reject(new Error("there is no channel")), {
  findChannel: (id) => {
    askedFor.push(id);
    return undefined;
  },
});
const app = new Hono<{ Bindings: HttpBindings }>({ getPath: getRoutePath });
app.route("/", createHooks(receiveHook));
app.notFound(() => new Response(null, { status: 418 }));

describe.each([
  ["the fast path", true],
  ["node:http", false],
])("HTTP requests on %s", (_, hookFastPath) => {
  let listener: Listener;
  beforeEach(async () => {
    listener = await startListener({ host: "127.0.0.1", port: 0, hookFastPath }, app.fetch);
    listener.serve({ fetch: app.fetch, receiveHook });
    askedFor.length = 0;
    vi.useFakeTimers({ toFake: ["setTimeout"] });
    vi.spyOn(globalThis, "setTimeout");
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    vi.useRealTimers();
    await listener[Symbol.asyncDispose]();
  });

  /** Counts the timers for bodies. The callback tells them apart from timers that earlier test files of this worker left behind. */
  const countDrains = (): number =>
    vi
      .mocked(setTimeout)
      .mock.calls.filter(([callback, ms]) => ms === DRAIN_MS && String(callback).includes("destroySoon"))
      .length;

  /** Opens a connection and collects the responses. */
  async function open(): Promise<{ readonly socket: Socket; readonly answered: () => readonly string[] }> {
    const socket = connect(listener.port, "127.0.0.1");
    await once(socket, "connect");
    let text = "";
    socket.setEncoding("latin1").on("data", (chunk) => {
      text += chunk;
    });
    return { socket, answered: () => text.match(/HTTP\/1\.1 \d+/g) ?? [] };
  }

  const head = (bytes: number, target = "/hooks/x"): string =>
    `POST ${target} HTTP/1.1\r\nHost: x\r\nContent-Length: ${bytes}\r\n\r\n`;

  it.each([
    ["/hooks/ch_1", ["ch_1"]],
    ["/hooks/ch_1?a=/hooks/ch_2#x", ["ch_1"]],
    ["/hooks/ch%5F1", ["ch_1"]],
    ["http://any.example/hooks/ch_1", ["ch_1"]],
    ["https://any.example:8443/hooks/ch_1?a", ["ch_1"]],
    ["/hooks/ch_1/", ["ch_1"]],
    ["/hooks/ch_1/?a", ["ch_1"]],
    ["/hooks//ch_1", ["ch_1"]],
    ["/hooks/ch_1//", []],
    ["/hooks/ch_1/a", []],
    ["/hooks//", []],
    ["/hooks/", []],
    ["/hooks/%zz", ["%zz"]],
    ["/hooks/a/b", []],
    ["/hooks/a%2Fb", []],
    ["/hooks/a%0Ab", ["a\nb"]],
    ["/hooks/../v1/apps", []],
    ["/hooks/%2e%2e/v1/apps", []],
    ["/hooks/./ch_1", []],
    ["http://any.example/hooks/../v1/apps", []],
  ])("parses the target %s as the channel ids %j, and responds with 404 if there is no such channel", async (target, ids) => {
    const { socket, answered } = await open();
    socket.write(head(0, target));
    await once(socket, "data");
    expect([answered(), askedFor]).toEqual([["HTTP/1.1 404"], ids]);
    socket.destroy();
  });

  it.each([
    "/",
    "/hooks",
    "/v1/hooks/ch_1",
    "/HOOKS/ch_1",
    "http://any.example/v1/hooks/ch_1",
  ])("with the target %s are passed to other handlers, because this is not a webhook path", async (target) => {
    const { socket, answered } = await open();
    socket.write(head(0, target));
    await once(socket, "data");
    expect([answered(), askedFor]).toEqual([["HTTP/1.1 418"], []]);
    socket.destroy();
  });

  it.each([
    ["no Host header", "POST /hooks/ch_1 HTTP/1.0\r\n\r\n"],
    ["an empty Host header", "POST /hooks/ch_1 HTTP/1.1\r\nHost:\r\nContent-Length: 0\r\n\r\n"],
  ])("receives a request with %s", async (_, text) => {
    const { socket, answered } = await open();
    socket.write(text);
    await once(socket, "data");
    expect([answered(), askedFor]).toEqual([["HTTP/1.1 404"], ["ch_1"]]);
    socket.destroy();
  });

  it("responds to pipelined requests in order", async () => {
    const { socket, answered } = await open();
    socket.write(["/hooks/ch_1", "/hooks/ch_2", "/hooks/ch_3"].map((target) => head(0, target)).join(""));
    await until(() => answered().length === 3);
    expect(askedFor).toEqual(["ch_1", "ch_2", "ch_3"]);
    socket.destroy();
  });

  it("are processed if a long request follows a short request on the same connection", async () => {
    const { socket, answered } = await open();
    const bytes = 150_000;
    socket.write(`${head(0, "/hooks/ch_1")}${head(bytes, "/hooks/ch_2")}${"x".repeat(bytes)}`);
    await until(() => answered().length === 2);
    expect(askedFor).toEqual(["ch_1", "ch_2"]);
    socket.destroy();
  });

  describe("that are rejected before their body is read", () => {
    it("leave no timer, and keep their connection open if the body arrived with the head", async () => {
      const { socket, answered } = await open();
      for (let i = 1; i <= 3; i++) {
        socket.write(`${head(2)}{}`);
        await once(socket, "data");
        expect(answered()).toEqual(Array(i).fill("HTTP/1.1 404"));
      }
      expect(countDrains()).toBe(0);
      socket.destroy();
    });

    it("keep their connection open if the body arrives soon", async () => {
      const { socket, answered } = await open();
      socket.write(head(2));
      await until(() => countDrains() === 1);
      socket.write(`{}${head(2)}{}`);
      await until(() => answered().length === 2);
      vi.advanceTimersByTime(10_000);
      socket.write(`${head(2)}{}`);
      await until(() => answered().length === 3);
      socket.destroy();
    });

    it("have their connection closed if the body does not arrive", async () => {
      const { socket, answered } = await open();
      socket.write(`${head(2)}{`);
      await until(() => answered().length === 1 && countDrains() === 1);
      vi.advanceTimersByTime(DRAIN_MS);
      await once(socket, "close");
    });
  });
});
