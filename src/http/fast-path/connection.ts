import type { Socket } from "node:net";
import { Readable } from "node:stream";
import { DRAIN_MS } from "../close-gently.ts";
import type { ReceiveHook } from "../hook-exchange.ts";
import { type ExchangeTarget, FastExchange, getRequestBytes, type Head, readHead } from "./request.ts";

export interface FastPathDeps {
  /** Receives webhook requests. All other requests are handled by `node:http`. */
  readonly receive: ReceiveHook;
  /** Lets `node:http` take over a connection permanently, including bytes that were received but not yet processed. */
  readonly handOffToNode: (socket: Socket) => void;
  readonly firstRequestMs: number;
  /** Time in ms after which a connection without requests is closed. It also limits how long a response may take to be sent. */
  readonly keepAliveMs: number;
  /** Maximum time for receiving the body of a request, in ms. */
  readonly bodyMs: number;
  /** Responds to a request whose body did not arrive in time, and closes the connection. */
  readonly rejectLate: (socket: Socket) => void;
}

/** Interval at which the timeouts of all connections are checked, in ms. A timer per connection would add 0.5 µs to each request. */
export const CHECK_INTERVAL_MS = 1_000;

/**
 * Maximum size of a request that is kept in memory as a whole, in bytes. It is the size of one socket read. Longer bodies become a stream.
 */
const MAX_COLLECTED_BYTES = 64 * 1024;
/**
 * Maximum number of socket reads per request. Requests that need more are handed off to `node:http`, which has timeouts for slow senders.
 */
const MAX_PIECES = 64;
/** Maximum announced size of all incomplete requests, in bytes. Further incomplete requests are handed off to `node:http`. */
const MAX_PARTIAL_BYTES = 16 * 1024 * 1024;

/** State that all connections share. */
export interface Shared extends FastPathDeps {
  readonly keepAlive: string;
  isLast: boolean;
  /** Number of timeout checks so far, which serves as a cheap clock. */
  checks: number;
  partialBytes: number;
}

export interface Connection extends Pick<ExchangeTarget, "destroy"> {
  /** Closes a connection that is waiting for another request. Hands off an incomplete first request to `node:http`. */
  readonly closeIdle: () => void;
  /** Closes the connection if it has been idle too long. */
  readonly checkIdle: () => void;
}

/** A request whose body has not arrived completely. */
interface PartialRequest {
  readonly head: Head;
  readonly pieces: Buffer[];
  missing: number;
}

/** A long body that is passed on as a stream while it arrives. */
interface LongBody {
  readonly stream: Readable;
  missing: number;
}

/**
 * Handles the requests of a connection until `node:http` must take over.
 *
 * @param onGone called once, when the connection is closed or `node:http` takes over
 */
export function readFrom(socket: Socket, shared: Shared, onGone: () => void): Connection {
  let state: "reading" | "answering" | "flushing" | "draining" | "ending" | "left" = "reading";
  let wasAnswered = false;
  let hasEnded = false;
  let closes = false;
  /** Number of bytes of the current request's body that are still to be discarded. */
  let unreadBytes = 0;
  let longBody: LongBody | undefined;
  let onClosed: (() => void) | undefined;
  let partialRequest: PartialRequest | undefined;
  let expiresAtCheck = 0;

  const onData = (bytes: Buffer): void => {
    if (state === "reading") read(bytes);
    else if (longBody !== undefined) passOn(longBody, bytes);
    else if (unreadBytes > 0) discard(bytes);
    else if (state !== "ending") pushBack(bytes);
  };

  /** Stops reading until the current request has its response. The given bytes are read again afterwards. */
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
    if (head === undefined) handOff(bytes);
    else if (getRequestBytes(head) <= bytes.length) receive(head, bytes);
    else if (getRequestBytes(head) > MAX_COLLECTED_BYTES) receiveLong(head, bytes);
    else if (shared.partialBytes + getRequestBytes(head) > MAX_PARTIAL_BYTES) handOff(bytes);
    else startPartialRequest(head, bytes);
  }

  function startPartialRequest(head: Head, bytes: Buffer): void {
    partialRequest = { head, pieces: [bytes], missing: getRequestBytes(head) - bytes.length };
    shared.partialBytes += getRequestBytes(head);
    expireAfter(CHECK_INTERVAL_MS);
    // Caches the client's address, because a closed socket no longer knows it.
    void socket.remoteAddress;
  }

  function addPiece(request: PartialRequest, piece: Buffer): void {
    const { head, pieces } = request;
    pieces.push(piece);
    request.missing -= piece.length;
    if (request.missing <= 0) receive(head, takePartialRequest(request));
    else if (pieces.length === MAX_PIECES) handOff(takePartialRequest(request));
  }

  function takePartialRequest({ head, pieces }: PartialRequest): Buffer {
    partialRequest = undefined;
    shared.partialBytes -= getRequestBytes(head);
    return Buffer.concat(pieces);
  }

  /** @param bytes a complete request, which other requests may follow */
  function receive(head: Head, bytes: Buffer): void {
    state = "answering";
    closes = head.closes;
    const end = getRequestBytes(head);
    // Copies the bytes of the next requests, because the memory of this request's body may be freed early.
    if (bytes.length > end) pushBack(Buffer.from(bytes.subarray(end)));
    shared.receive(head.channelId, new FastExchange(head, bytes.subarray(head.bytes, end), target));
  }

  /** @param bytes the request's head and the start of its body */
  function receiveLong(head: Head, bytes: Buffer): void {
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
    shared.receive(head.channelId, new FastExchange(head, stream, target));
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

  /** Discards the rest of a body that was rejected early. Afterwards, the connection can be used for the next request. */
  function discard(bytes: Buffer): void {
    const rest = bytes.subarray(unreadBytes);
    unreadBytes = Math.max(0, unreadBytes - bytes.length);
    if (unreadBytes > 0) return;
    if (state === "draining") state = "reading";
    if (rest.length > 0) onData(rest);
  }

  /** Ends the stream of a long body if the rest is discarded or will not arrive. */
  function dropLongBody(): void {
    longBody?.stream.destroy();
    longBody = undefined;
  }

  /** Receives a request that is incomplete, because its sender has disconnected. */
  function receiveCut(request: PartialRequest): void {
    const { head } = request;
    takePartialRequest(request);
    state = "answering";
    closes = true;
    shared.receive(head.channelId, new FastExchange(head, new Readable().destroy(), target));
  }

  /** Returns whether this response closes the connection. Once true, it stays true, because no response may follow `Connection: close`. */
  const isLast = (): boolean => shared.isLast || closes || hasEnded;
  const target: ExchangeTarget = {
    get peerAddress() {
      return socket.remoteAddress;
    },
    reply(head, body, closesHere) {
      if (socket.destroyed || state !== "answering") return;
      unreadBytes = longBody?.missing ?? 0;
      closes ||= closesHere;
      dropLongBody();
      state = "flushing";
      expireAfter(shared.keepAliveMs);
      const connection = isLast() ? "Connection: close\r\n" : shared.keepAlive;
      if (socket.write(`${head}${connection}\r\n${body}`)) readNext();
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
    if (!isLast()) state = unreadBytes > 0 ? "draining" : "reading";
    else if (unreadBytes > 0) end();
    else endSoon();
    if (unreadBytes > 0) expireAfter(DRAIN_MS);
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

  /** Ends a long body that did not arrive in time. The reply to its incomplete request is discarded. */
  function endLate(): void {
    dropLongBody();
    state = "ending";
    shared.rejectLate(socket);
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
    else if (state === "reading" || state === "draining") end();
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
    // Ignores errors, because `close` always follows.
    ["error", () => {}],
  ] as const;
  for (const [event, listener] of listeners) socket.on(event, listener);
  expireAfter(shared.firstRequestMs);

  return {
    closeIdle() {
      if (state !== "reading") return;
      if (partialRequest !== undefined) handOff(takePartialRequest(partialRequest));
      else if (wasAnswered) endSoon();
      else handOff(Buffer.alloc(0));
    },
    checkIdle() {
      if (shared.checks <= expiresAtCheck || (state === "answering" && longBody === undefined)) return;
      if (longBody !== undefined) endLate();
      else if (partialRequest === undefined) socket.destroy();
      else handOff(takePartialRequest(partialRequest));
    },
    destroy: target.destroy,
  };
}
