import type { Socket } from "node:net";
import { PlainReply, type ReplyTarget } from "./plain-reply.ts";
import { type Head, PlainRequest, readHead } from "./plain-request.ts";

export interface FastPathDeps {
  /**
   * Handles a request, or returns false without side effects. If the request has an unread body, the handler must send the reply before it
   * returns. It may send other replies later.
   */
  readonly answer: (request: PlainRequest, reply: PlainReply) => boolean;
  /**
   * Hands a connection off to `node:http` permanently. Bytes that were received but not answered are pushed back, so that `node:http` reads
   * them.
   */
  readonly handOffToNode: (socket: Socket) => void;
  /** Timeout for the first request of a new connection, in milliseconds. */
  readonly firstRequestMs: number;
  /**
   * Timeout for an idle connection after a response, in milliseconds. It also limits the time in which the operating system must accept the
   * response.
   */
  readonly keepAliveMs: number;
}

/**
 * Interval at which all connections are checked for timeouts. A timer per connection would have to be reset on each read and write, which
 * would cost 0.5 µs per request.
 */
const CHECK_INTERVAL_MS = 1_000;

/** Reads requests from connections, until a connection is handed off to `node:http`. */
export interface FastPath {
  readonly take: (socket: Socket) => void;
  /** Makes every response from now on close its connection. */
  readonly answerLast: () => void;
  /**
   * Closes connections that had a response and have no request in flight. Connections whose first request is not complete are handed off to
   * `node:http`.
   */
  readonly closeIdle: () => void;
  readonly closeAll: () => void;
}

/** Maximum size of head and body together. It is the size of one socket read. */
const MAX_REQUEST_BYTES = 64 * 1024;
/**
 * Maximum number of pieces in which a request may arrive. If a request needs more pieces or more time, its sender is slow, and `node:http`
 * has timeouts for that.
 */
const MAX_PIECES = 64;
const PIECES_MS = CHECK_INTERVAL_MS;
/**
 * How long to continue reading after an early response. If the socket closed at once, a sender that is still sending could miss the
 * response.
 */
const DRAIN_MS = CHECK_INTERVAL_MS;
/** Maximum size of all incomplete requests together, according to their headers. Requests above it are handed off to `node:http`. */
const MAX_PARTIAL_BYTES = 16 * 1024 * 1024;

/**
 * Creates a reader of requests that does without the parser, streams and objects of `node:http`. Those cost as much CPU time as the rest of
 * a small delivery.
 * It reads short, plain requests (see `readHead`). Of long requests it reads only the head, so that they can be rejected early. At the
 * first request of any other form, the connection is handed off to `node:http` for good, with all its bytes.
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
  /** Number of timeout checks so far. */
  checks: number;
  partialBytes: number;
}

interface Connection extends Pick<FastPath, "closeIdle">, Pick<ReplyTarget, "destroy"> {
  /** Closes the connection if it has been idle for too long. */
  readonly checkIdle: () => void;
}

/** A request that has not arrived completely. */
interface PartialRequest {
  readonly head: Head;
  readonly pieces: Buffer[];
  missing: number;
}

const getRequestBytes = ({ bytes, bodyBytes }: Head): number => bytes + bodyBytes;

/**
 * Reads the requests of one connection.
 *
 * @param onGone called once, when the connection has closed or was handed off to `node:http`
 */
function readFrom(socket: Socket, shared: Shared, onGone: () => void): Connection {
  let state: "reading" | "answering" | "flushing" | "ending" | "left" = "reading";
  let wasAnswered = false;
  let hasEnded = false;
  /** Whether the reply to the current request closes the connection. */
  let closes = false;
  /** Whether the body of the current request is discarded. */
  let isUnread = false;
  let partialRequest: PartialRequest | undefined;
  let expiresAtCheck = 0;

  const onData = (bytes: Buffer): void => {
    if (state === "reading") read(bytes);
    else if (state !== "ending") pushBack(bytes);
  };

  /** Pauses reading until the current request has its response. The bytes are read again after that, and so is the end of the stream. */
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
    // Reads the remote address now, because a socket that has closed no longer knows it unless it was read before.
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

  /**
   * Passes a complete request to the handler.
   *
   * @param bytes the request, possibly followed by others
   */
  function answer(head: Head, bytes: Buffer): void {
    state = "answering";
    closes = head.closes;
    const end = getRequestBytes(head);
    // Copies the bytes of the next requests, because the memory of this request's body may be freed early.
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
   * Handles a request whose sender disconnected before it was complete. As for all other requests, the handler decides about the response.
   */
  function answerIncomplete(request: PartialRequest): void {
    const { head } = request;
    const cut = new PlainRequest(head, takePartialRequest(request).subarray(head.bytes), socket, "cut");
    state = "answering";
    closes = true;
    if (!shared.answer(cut, new PlainReply(target))) end();
  }

  /**
   * Whether the connection closes after the current reply. Once true, it stays true, because a reply that announces the close must be the
   * last one.
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

  /** Closes the connection once the response has been sent. */
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
    // An error needs no handling, because `close` follows it.
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
