import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { vi } from "vitest";
import { type Listener, startListener } from "../../../src/gateway/listener.ts";
import type { Incoming, Outgoing } from "../../../src/http/context.ts";
import { createFastPath, type FastPathDeps } from "../../../src/http/fast-path/fast-path.ts";
import { PlainReply } from "../../../src/http/fast-path/plain-reply.ts";
import { PlainRequest } from "../../../src/http/fast-path/plain-request.ts";
import { until } from "../../support/until.ts";

/** A request that was handed over, to be answered by the test. */
export interface Arrived {
  readonly url: string | undefined;
  readonly body: string;
  readonly byNode: boolean;
  readonly isCut: boolean;
  readonly senderAddress: string | undefined;
  readonly outgoing: Outgoing;
  readonly answer: (text: string, headers?: Readonly<Record<string, string>>) => void;
}

/** All that has arrived since the test began, in its order. */
export let arrived: Arrived[] = [];
let ending = new AsyncDisposableStack();
/** Behind each test. A module that many files of tests import is run once: what it said to Vitest itself would hold for one of them. */
export async function endAll(): Promise<void> {
  await ending.disposeAsync();
  vi.useRealTimers();
  ending = new AsyncDisposableStack();
  arrived = [];
}

/** Takes all but `/other`, and answers nothing. What a connection still brings when its test has ended is none of the next one's. */
const takeInto =
  (list: Arrived[]) =>
  (incoming: Incoming, outgoing: Outgoing): boolean => {
    if (incoming.url === "/other") return false;
    const byNode = !(incoming instanceof PlainRequest);
    if (!byNode && incoming.bodyState === "unread" && incoming.url !== "/unread") return false;
    const hand = (body: Buffer): void => {
      const answer: Arrived["answer"] = (text, headers = {}) => {
        const length = String(Buffer.byteLength(text));
        if (outgoing instanceof PlainReply)
          outgoing.send(200, `content-length: ${length}\r\n`, headers, text);
        else outgoing.writeHead(200, { "content-length": length, ...headers }).end(text);
      };
      list.push({
        url: incoming.url,
        body: body.toString(),
        byNode,
        isCut: !byNode && incoming.bodyState === "cut",
        senderAddress: incoming.socket.remoteAddress,
        outgoing,
        answer,
      });
    };
    if (!byNode) hand(incoming.read());
    else
      incoming.toArray().then(
        (pieces: Buffer[]) => hand(Buffer.concat(pieces)),
        () => {},
      );
    return true;
  };

export async function start(): Promise<{ readonly listener: Listener; readonly stop: () => Promise<void> }> {
  const fetchOther = () => new Response("other");
  const listener = ending.use(await startListener({ host: "127.0.0.1", port: 0 }, fetchOther));
  const serving = listener.serve({ fetch: fetchOther, answerDirectly: takeInto(arrived) });
  return { listener, stop: async () => serving[Symbol.asyncDispose]() };
}

/** The other end of a sender's connection. */
interface TakenSocket {
  /** Bytes. */
  readonly received: () => number;
  /** Bytes of answers that the system has not taken. */
  readonly unsent: () => number;
  readonly hasClosed: () => boolean;
}

/** Without a Node that takes what is left to it. Its clock is the test's. */
export async function startAlone(answer: FastPathDeps["answer"] = takeInto(arrived)) {
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
    answer,
    handOffToNode,
    firstRequestMs: 20_000,
    keepAliveMs: 75_000,
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
    // They are taken in their order. To ask a socket for its sender's port would have it remember the address.
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
  /** All that it was answered so far. */
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

export const request = (body: string, path = "/a", more = ""): string =>
  `POST ${path} HTTP/1.1\r\nHost: a.example\r\n${more}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
export const nth = async (count: number): Promise<Arrived> => {
  await until(() => arrived.length >= count);
  return arrived[count - 1] as Arrived;
};
export const answersIn = (text: string): number => text.split("HTTP/1.1 ").length - 1;
