import type { Socket } from "node:net";
import { PlainReply, type ReplyTarget } from "./plain-reply.ts";
import { type Head, PlainRequest, readHead } from "./plain-request.ts";

export interface FastPathDeps {
  /**
   * Handles a request, or returns false without side effects. The response to a request with an unread body must be sent before this
   * returns; all other responses may be sent later.
   */
  readonly answer: (request: PlainRequest, reply: PlainReply) => boolean;
  /** Hands a connection off to `node:http` permanently. Unanswered bytes were pushed back to the socket before. */
  readonly handOffToNode: (socket: Socket) => void;
  readonly firstRequestMs: number;
  /** Idle timeout of a connection after a response, in milliseconds. It also bounds how long the kernel may take to accept the response. */
  readonly keepAliveMs: number;
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

/** Maximum size of a request's head and body together, in bytes. It equals one socket read. */
const MAX_REQUEST_BYTES = 64 * 1024;
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
 * Reads requests without the parser, streams and objects of `node:http`, which would cost as much CPU time as the rest of a small delivery.
 * It reads only short, plain requests (see `readHead`). For requests with a large body it reads just the head, so that they can be rejected
 * early. On any other request, it hands the connection off to `node:http` for good.
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

interface Connection extends Pick<FastPath, "closeIdle">, Pick<ReplyTarget, "destroy"> {
  readonly checkIdle: () => void;
}

interface PartialRequest {
  readonly head: Head;
  readonly pieces: Buffer[];
  missing: number;
}

const getRequestBytes = ({ bytes, bodyBytes }: Head): number => bytes + bodyBytes;

/** @param onGone called once, when the connection closes or is handed off to `node:http` */
function readFrom(socket: Socket, shared: Shared, onGone: () => void): Connection {
  let state: "reading" | "answering" | "flushing" | "ending" | "left" = "reading";
  let wasAnswered = false;
  let hasEnded = false;
  let closes = false;
  let isUnread = false;
  let partialRequest: PartialRequest | undefined;
  let expiresAtCheck = 0;

  const onData = (bytes: Buffer): void => {
    if (state === "reading") read(bytes);
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
    if (head === undefined) handOff(bytes);
    else if (getRequestBytes(head) <= bytes.length) answer(head, bytes);
    else if (getRequestBytes(head) > MAX_REQUEST_BYTES) answerUnread(head, bytes);
    else if (shared.partialBytes + getRequestBytes(head) > MAX_PARTIAL_BYTES) handOff(bytes);
    else startPartialRequest(head, bytes);
  }

  function startPartialRequest(head: Head, bytes: Buffer): void {
    partialRequest = { head, pieces: [bytes], missing: getRequestBytes(head) - bytes.length };
    shared.partialBytes += getRequestBytes(head);
    expireAfter(PIECES_MS);
    // Cache the remote address now, because a closed socket can no longer look it up.
    void socket.remoteAddress;
  }

  function addPiece(request: PartialRequest, piece: Buffer): void {
    const { head, pieces } = request;
    pieces.push(piece);
    request.missing -= piece.length;
    if (request.missing <= 0) answer(head, takePartialRequest(request));
    else if (pieces.length === MAX_PIECES) handOff(takePartialRequest(request));
  }

  function takePartialRequest({ head, pieces }: PartialRequest): Buffer {
    partialRequest = undefined;
    shared.partialBytes -= getRequestBytes(head);
    return Buffer.concat(pieces);
  }

  /** @param bytes the complete request, possibly followed by further requests */
  function answer(head: Head, bytes: Buffer): void {
    state = "answering";
    closes = head.closes;
    const end = getRequestBytes(head);
    // Copy the bytes of the following requests, because the memory of this request's body may be freed early.
    if (bytes.length > end) pushBack(Buffer.from(bytes.subarray(end)));
    const request = new PlainRequest(head, bytes.subarray(head.bytes, end), socket);
    if (shared.answer(request, new PlainReply(target))) return;
    handOff(bytes.subarray(0, end));
  }

  function answerUnread(head: Head, bytes: Buffer): void {
    state = "answering";
    closes = true;
    isUnread = true;
    const request = new PlainRequest(head, NO_BYTES, socket, "unread");
    if (shared.answer(request, new PlainReply(target))) return;
    handOff(bytes);
  }

  /**
   * Handles a request whose client disconnected before sending all of it. The handler decides about the response, as for every complete
   * request.
   */
  function answerIncomplete(request: PartialRequest): void {
    const { head } = request;
    const cut = new PlainRequest(head, takePartialRequest(request).subarray(head.bytes), socket, "cut");
    state = "answering";
    closes = true;
    if (!shared.answer(cut, new PlainReply(target))) end();
  }

  /**
   * Whether the current reply closes the connection. This never changes back to false, because no reply may follow one with `Connection:
   * close`.
   */
  const isLast = (): boolean => shared.isLast || closes || hasEnded;
  const target: ReplyTarget = {
    reply(head, body, closesHere) {
      if (socket.destroyed || state !== "answering") return;
      closes ||= closesHere;
      state = "flushing";
      expireAfter(shared.keepAliveMs);
      const isWritten = socket.write(
        `${head}${isLast() ? "Connection: close\r\n" : shared.keepAlive}\r\n${body}`,
      );
      if (isWritten) readNext();
      else socket.once("drain", readNext);
    },
    destroy: () => socket.destroy(),
  };

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
    if (partialRequest !== undefined) answerIncomplete(partialRequest);
    else if (state === "reading") end();
  };
  const onClose = (): void => {
    if (partialRequest !== undefined) answerIncomplete(partialRequest);
    onGone();
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
      if (state === "answering" || shared.checks <= expiresAtCheck) return;
      if (partialRequest === undefined) socket.destroy();
      else handOff(takePartialRequest(partialRequest));
    },
    destroy: target.destroy,
  };
}

const NO_BYTES = Buffer.alloc(0);
