import type { Socket } from "node:net";
import { Readable } from "node:stream";
import type { ReceiveHook } from "../hook-exchange.ts";
import { type ExchangeTarget, FastExchange } from "./fast-exchange.ts";
import { findChannelId, type Head, readHead } from "./request-head.ts";

export interface FastPathDeps {
  /** Receives requests to channel addresses. All others are handed off. */
  readonly receive: ReceiveHook;
  /**
   * Hands a connection off to `node:http` permanently. Bytes that were received but not answered are pushed back, so that `node:http` reads
   * them.
   */
  readonly handOffToNode: (socket: Socket) => void;
  readonly firstRequestMs: number;
  /** Idle timeout of a connection after a response, in milliseconds. It also bounds how long the kernel may take to accept the response. */
  readonly keepAliveMs: number;
  /** Timeout for the whole body of a request, in milliseconds. */
  readonly bodyMs: number;
}

/**
 * Interval of the timeout check of all connections, in milliseconds. One timer per connection would cost 0.5 µs per request, because each
 * read and write resets it.
 */
const CHECK_INTERVAL_MS = 1_000;

/** Reads requests from connections until it hands a connection off to `node:http`. */
export interface FastPath {
  readonly take: (socket: Socket) => void;
  /** From now on, every response closes its connection. */
  readonly answerLast: () => void;
  /** Closes connections that are idle after a response. Connections whose first request is incomplete are handed off to `node:http`. */
  readonly closeIdle: () => void;
  readonly closeAll: () => void;
}

/** Maximum size of a request that is collected before it is received. It is the size of one socket read. A longer body is a stream. */
const MAX_COLLECTED_BYTES = 64 * 1024;
/**
 * Maximum number of socket reads per request. A sender that needs more, or more than `PIECES_MS`, is slow and handed off to `node:http`,
 * which has timeouts for slow senders.
 */
const MAX_PIECES = 64;
const PIECES_MS = CHECK_INTERVAL_MS;
/**
 * Time to continue reading after an early response. If the socket were closed at once, a client that is still sending could miss the
 * response.
 */
const DRAIN_MS = CHECK_INTERVAL_MS;
/** Maximum total size of incomplete requests in bytes, as announced in their headers. Further ones are handed off to `node:http`. */
const MAX_PARTIAL_BYTES = 16 * 1024 * 1024;

/**
 * Creates a reader of requests that does without the parser, streams and objects of `node:http`. Those cost as much CPU time as the rest of
 * a small delivery.
 *
 * It reads plain requests to channel addresses (see `readHead`). At the first request of any other form, the connection is handed off to
 * `node:http` for good, with all its bytes.
 */
export function createFastPath(deps: FastPathDeps): FastPath {
  const connections = new Set<Connection>();
  const shared: Shared = {
    ...deps,
    keepAlive: `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(deps.keepAliveMs / 1_000)}\r\n`,
    isLast: false,
    checks: 0,
    partialBytes: 0,
  };
  let checkTimer: NodeJS.Timeout | undefined;
  const checkIdle = (): void => {
    shared.checks++;
    for (const connection of connections) connection.checkIdle();
  };
  return {
    take(socket) {
      checkTimer ??= setInterval(checkIdle, CHECK_INTERVAL_MS).unref();
      const connection = readFrom(socket, shared, () => connections.delete(connection));
      connections.add(connection);
    },
    answerLast() {
      shared.isLast = true;
    },
    closeIdle() {
      for (const connection of connections) connection.closeIdle();
    },
    closeAll() {
      clearInterval(checkTimer);
      for (const connection of connections) connection.destroy();
    },
  };
}

interface Shared extends FastPathDeps {
  readonly keepAlive: string;
  isLast: boolean;
  /** Number of timeout checks so far. Connections use it as a clock. */
  checks: number;
  partialBytes: number;
}

interface Connection extends Pick<FastPath, "closeIdle">, Pick<ExchangeTarget, "destroy"> {
  /** Closes the connection if it has been idle for too long. */
  readonly checkIdle: () => void;
}

/** A request that is collected until its body is complete. */
interface PartialRequest {
  readonly channelId: string;
  readonly head: Head;
  readonly pieces: Buffer[];
  missing: number;
}

/** A body that is passed on while it arrives. */
interface LongBody {
  readonly stream: Readable;
  missing: number;
}

const getRequestBytes = ({ bytes, bodyBytes }: Head): number => bytes + bodyBytes;

/** @param onGone called once, when the connection closes or is handed off to `node:http` */
function readFrom(socket: Socket, shared: Shared, onGone: () => void): Connection {
  let state: "reading" | "answering" | "flushing" | "ending" | "left" = "reading";
  let wasAnswered = false;
  let hasEnded = false;
  let closes = false;
  /** Whether the rest of the current request's body is discarded. */
  let isUnread = false;
  let longBody: LongBody | undefined;
  let onClosed: (() => void) | undefined;
  let partialRequest: PartialRequest | undefined;
  let expiresAtCheck = 0;

  const onData = (bytes: Buffer): void => {
    if (state === "reading") read(bytes);
    else if (longBody !== undefined) passOn(longBody, bytes);
    else if (state !== "ending") pushBack(bytes);
  };

  /** Pauses the socket until the current request is answered. After that, the bytes and the end of the stream are read again. */
  function pushBack(bytes: Buffer): void {
    socket.pause();
    socket.unshift(bytes);
  }

  function read(bytes: Buffer): void {
    if (partialRequest !== undefined) {
      addPiece(partialRequest, bytes);
      return;
    }
    const head = readHead(bytes);
    const channelId = head && findChannelId(head.target);
    if (head === undefined || channelId === undefined) handOff(bytes);
    else if (getRequestBytes(head) <= bytes.length) receive(channelId, head, bytes);
    else if (getRequestBytes(head) > MAX_COLLECTED_BYTES) receiveLong(channelId, head, bytes);
    else if (shared.partialBytes + getRequestBytes(head) > MAX_PARTIAL_BYTES) handOff(bytes);
    else startPartialRequest(channelId, head, bytes);
  }

  function startPartialRequest(channelId: string, head: Head, bytes: Buffer): void {
    partialRequest = { channelId, head, pieces: [bytes], missing: getRequestBytes(head) - bytes.length };
    shared.partialBytes += getRequestBytes(head);
    expireAfter(PIECES_MS);
    // Cache the remote address now, because a closed socket can no longer look it up.
    void socket.remoteAddress;
  }

  function addPiece(request: PartialRequest, piece: Buffer): void {
    const { channelId, head, pieces } = request;
    pieces.push(piece);
    request.missing -= piece.length;
    if (request.missing <= 0) receive(channelId, head, takePartialRequest(request));
    else if (pieces.length === MAX_PIECES) handOff(takePartialRequest(request));
  }

  function takePartialRequest({ head, pieces }: PartialRequest): Buffer {
    partialRequest = undefined;
    shared.partialBytes -= getRequestBytes(head);
    return Buffer.concat(pieces);
  }

  /** @param bytes a complete request, possibly followed by others */
  function receive(channelId: string, head: Head, bytes: Buffer): void {
    state = "answering";
    closes = head.closes;
    const end = getRequestBytes(head);
    // Copy the bytes of the following requests, because the memory of this request's body may be freed early.
    if (bytes.length > end) pushBack(Buffer.from(bytes.subarray(end)));
    shared.receive(channelId, new FastExchange(head, bytes.subarray(head.bytes, end), target));
  }

  /** @param bytes the head of a request and the first part of its body */
  function receiveLong(channelId: string, head: Head, bytes: Buffer): void {
    state = "answering";
    closes = head.closes;
    expireAfter(shared.bodyMs);
    void socket.remoteAddress;
    const stream = new Readable({
      read() {
        if (longBody?.stream === stream) socket.resume();
      },
    });
    longBody = { stream, missing: getRequestBytes(head) - bytes.length };
    stream.push(bytes.subarray(head.bytes));
    shared.receive(channelId, new FastExchange(head, stream, target));
  }

  function passOn(body: LongBody, bytes: Buffer): void {
    const piece = bytes.subarray(0, body.missing);
    body.missing -= piece.length;
    const isFull = !body.stream.push(piece);
    if (body.missing === 0) {
      longBody = undefined;
      body.stream.push(null);
      // Copies the bytes of the next requests, because the memory of this body's pieces may be freed early.
      if (bytes.length > piece.length) pushBack(Buffer.from(bytes.subarray(piece.length)));
    } else if (isFull) socket.pause();
  }

  /** Ends the stream of a long body whose rest is discarded or will not arrive. */
  function dropLongBody(): void {
    longBody?.stream.destroy();
    longBody = undefined;
  }

  /** Receives a request whose sender disconnected before it was complete. */
  function receiveCut(request: PartialRequest): void {
    const { channelId, head } = request;
    takePartialRequest(request);
    state = "answering";
    closes = true;
    shared.receive(channelId, new FastExchange(head, new Readable().destroy(), target));
  }

  /**
   * Whether the current reply closes the connection. This never changes back to false, because no reply may follow one with `Connection:
   * close`.
   */
  const isLast = (): boolean => shared.isLast || closes || hasEnded;
  const target: ExchangeTarget = {
    get peerAddress() {
      return socket.remoteAddress;
    },
    reply(head, body, closesHere) {
      if (socket.destroyed || state !== "answering") return;
      isUnread = longBody !== undefined;
      closes ||= closesHere || isUnread;
      dropLongBody();
      state = "flushing";
      expireAfter(shared.keepAliveMs);
      const isWritten = socket.write(
        `${head}${isLast() ? "Connection: close\r\n" : shared.keepAlive}\r\n${body}`,
      );
      if (isWritten) readNext();
      else socket.once("drain", readNext);
      notifyClosed();
    },
    destroy: () => socket.destroy(),
    onClosed(listener) {
      if (state === "answering" && !socket.destroyed) onClosed = listener;
      else listener();
    },
  };

  function notifyClosed(): void {
    onClosed?.();
    onClosed = undefined;
  }

  function readNext(): void {
    if (isLast()) {
      if (isUnread) endUnread();
      else endSoon();
      return;
    }
    state = "reading";
    wasAnswered = true;
    if (socket.isPaused()) socket.resume();
  }

  function end(): void {
    state = "ending";
    socket.end();
  }

  function endSoon(): void {
    state = "ending";
    socket.destroySoon();
  }

  function endUnread(): void {
    expireAfter(DRAIN_MS);
    end();
    socket.resume();
  }

  function expireAfter(ms: number): void {
    expiresAtCheck = shared.checks + Math.ceil(ms / CHECK_INTERVAL_MS);
  }

  function handOff(bytes: Buffer): void {
    state = "left";
    onGone();
    for (const [event, listener] of listeners) socket.off(event, listener);
    if (bytes.length > 0) socket.unshift(bytes);
    shared.handOffToNode(socket);
    socket.resume();
  }

  const onEnd = (): void => {
    hasEnded = true;
    dropLongBody();
    if (partialRequest !== undefined) receiveCut(partialRequest);
    else if (state === "reading") end();
  };
  const onClose = (): void => {
    dropLongBody();
    if (partialRequest !== undefined) receiveCut(partialRequest);
    onGone();
    notifyClosed();
  };
  const listeners = [
    ["data", onData],
    ["end", onEnd],
    ["close", onClose],
    // Errors need no handling here, because `close` always follows.
    ["error", () => {}],
  ] as const;
  for (const [event, listener] of listeners) socket.on(event, listener);
  expireAfter(shared.firstRequestMs);

  return {
    closeIdle() {
      if (state !== "reading") return;
      if (partialRequest !== undefined) handOff(takePartialRequest(partialRequest));
      else if (wasAnswered) endSoon();
      else handOff(NO_BYTES);
    },
    checkIdle() {
      const waits = state === "answering" && longBody === undefined;
      if (waits || shared.checks <= expiresAtCheck) return;
      if (partialRequest === undefined) socket.destroy();
      else handOff(takePartialRequest(partialRequest));
    },
    destroy: target.destroy,
  };
}

const NO_BYTES = Buffer.alloc(0);
