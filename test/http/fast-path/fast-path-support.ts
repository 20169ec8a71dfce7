import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { vi } from "vitest";
import { type Listener, startListener } from "../../../src/gateway/listener.ts";
import type { Fetch } from "../../../src/http/context.ts";
import { createFastPath } from "../../../src/http/fast-path/fast-path.ts";
import type { HookExchange, ReceiveHook } from "../../../src/http/hook-exchange.ts";
import { createHooks, NodeExchange } from "../../../src/http/hooks.ts";
import { createInvalidRequests } from "../../../src/http/invalid-requests.ts";
import { until } from "../../support/until.ts";

/** A request on the fast path. The test replies to it. */
export interface Arrived {
  readonly url: string | undefined;
  readonly body: string;
  readonly byNode: boolean;
  readonly isCut: boolean;
  readonly senderAddress: string | undefined;
  readonly exchange: HookExchange;
  readonly answer: (text: string, headers?: Readonly<Record<string, string>>) => void;
}

/** All requests since the test began, in order. */
export let arrived: Arrived[] = [];
let ending = new AsyncDisposableStack();
/** Call after each test. This module is loaded once for many test files, so its own Vitest hooks would only apply to one of them. */
export async function endAll(): Promise<void> {
  await ending.disposeAsync();
  vi.useRealTimers();
  ending = new AsyncDisposableStack();
  arrived = [];
}

/**
 * Receives all requests without replying. Does not read the body of the channel `unread`. Requests that arrive after a test ended are not
 * recorded for the next one.
 */
const takeInto =
  (list: Arrived[]): ReceiveHook =>
  (channelId, exchange) => {
    const hand = (body: Buffer, isCut: boolean): void => {
      list.push({
        url: exchange.target,
        body: body.toString(),
        byNode: exchange instanceof NodeExchange,
        isCut,
        senderAddress: exchange.peerAddress,
        exchange,
        answer: (text, headers = {}) => exchange.reply({ status: 200, headers, body: text }, "req_1"),
      });
    };
    if (channelId === "unread") {
      hand(Buffer.alloc(0), false);
      return;
    }
    const body = exchange.takeBody();
    if (Buffer.isBuffer(body)) {
      hand(body, false);
      return;
    }
    if (body.destroyed) {
      hand(Buffer.alloc(0), true);
      return;
    }
    const pieces: Buffer[] = [];
    let hasEnded = false;
    body.on("data", (piece: Buffer) => pieces.push(piece));
    body.on("end", () => {
      hasEnded = true;
      hand(Buffer.concat(pieces), false);
    });
    body.on("close", () => {
      if (!hasEnded) hand(Buffer.concat(pieces), true);
    });
  };

export async function start(): Promise<{ readonly listener: Listener; readonly stop: () => Promise<void> }> {
  const receiveHook = takeInto(arrived);
  const hooks = createHooks(receiveHook);
  // Node's server responds to a half-closed connection only if the response is synchronous.
  const fetch: Fetch = (request, bindings) =>
    request.url.endsWith("/other") ? new Response("other") : hooks.fetch(request, bindings);
  const listener = ending.use(await startListener({ host: "127.0.0.1", port: 0 }, fetch));
  const serving = listener.serve({ fetch, receiveHook });
  return { listener, stop: async () => serving[Symbol.asyncDispose]() };
}

/** The server side of a client connection. */
interface TakenSocket {
  /** Number of received bytes. */
  readonly received: () => number;
  /** Number of response bytes that the system has not accepted yet. */
  readonly unsent: () => number;
  readonly hasClosed: () => boolean;
}

/** Starts the fast path without Node's HTTP server. The test controls the clock. */
export async function startAlone(receive: ReceiveHook = takeInto(arrived)) {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const left: { readonly socket: Socket; read: string }[] = [];
  const handOffToNode = (socket: Socket): void => {
    const one = { socket, read: "" };
    socket.on("data", (bytes) => {
      one.read += bytes;
    });
    left.push(one);
  };
  const fastPath = createFastPath({
    receive,
    handOffToNode,
    firstRequestMs: 20_000,
    keepAliveMs: 75_000,
    bodyMs: 60_000,
    rejectLate: createInvalidRequests({ maxHeaderBytes: 16_384, onInvalid: () => {} }).rejectLate,
  });
  const server = createServer({ allowHalfOpen: true }, fastPath.take).listen(0, "127.0.0.1");
  ending.defer(() => {
    fastPath.closeAll();
    for (const { socket } of left) socket.destroy();
    server.close();
  });
  const taken: Socket[] = [];
  let opened = 0;
  server.on("connection", (socket: Socket) => taken.push(socket));
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const openHere = async (): Promise<Sender & TakenSocket> => {
    // Sockets are matched by order. Reading the client's port would make a socket remember its address.
    const place = opened++;
    const sender = await open(port);
    await until(() => taken.length > place);
    const socket = taken[place] as Socket;
    return {
      ...sender,
      received: () => socket.bytesRead,
      unsent: () => socket.writableLength,
      hasClosed: () => socket.closed,
    };
  };
  return { open: openHere, left, closeIdle: fastPath.closeIdle };
}

export interface Sender {
  readonly socket: Socket;
  /** Returns all responses so far. */
  readonly answered: () => string;
  readonly hasEnded: () => boolean;
}

export async function open(port: number): Promise<Sender> {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true, allowHalfOpen: true });
  ending.defer(() => void socket.destroy());
  let text = "";
  let hasEnded = false;
  socket.setEncoding("utf8").on("error", () => {});
  socket.on("data", (piece) => {
    text += piece;
  });
  for (const event of ["end", "close"]) socket.on(event, () => (hasEnded = true));
  await once(socket, "connect");
  return { socket, answered: () => text, hasEnded: () => hasEnded };
}

export const request = (body: string, path = "/hooks/a", more = ""): string =>
  `POST ${path} HTTP/1.1\r\nHost: a.example\r\n${more}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
export const nth = async (count: number): Promise<Arrived> => {
  await until(() => arrived.length >= count);
  return arrived[count - 1] as Arrived;
};
export const answersIn = (text: string): number => text.split("HTTP/1.1 ").length - 1;
