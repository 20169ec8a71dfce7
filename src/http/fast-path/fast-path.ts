import type { Socket } from "node:net";
import { PlainReply, type ReplyTarget } from "./plain-reply.ts";
import { type Head, PlainRequest, readHead } from "./plain-request.ts";

export interface FastPathDeps {
  /**
   * Answers a request, or says that it is not its own: then nothing has become of it. One whose body is unread it answers before it
   * returns, or not at all; others later.
   */
  readonly answer: (request: PlainRequest, reply: PlainReply) => boolean;
  /** Takes a connection over for good; what has come on it and was not answered is read there anew. */
  readonly handOffToNode: (socket: Socket) => void;
  /** How long a new connection may say nothing. */
  readonly firstRequestMs: number;
  /** How long it may rest once a request of it was answered, and how long the system may take to take the answer. */
  readonly keepAliveMs: number;
}

/** All connections are looked at once a second: a timer of each, set anew by each read and write, would cost a request 0.5 µs. */
const CHECK_INTERVAL_MS = 1_000;

/** Reads the requests of connections, until it leaves them to Node. */
export interface FastPath {
  readonly take: (socket: Socket) => void;
  /** Each answer is the last of its connection from now on. */
  readonly answerLast: () => void;
  /** Ends connections that were answered and have no request under way. Those that have said nothing yet, or not all, go to Node. */
  readonly closeIdle: () => void;
  readonly closeAll: () => void;
}

/** Head and body. As much as a socket reads at once. */
const MAX_REQUEST_BYTES = 64 * 1024;
/** What comes in more pieces, or is not whole after so long, has a slow sender: Node has clocks for those. */
const MAX_PIECES = 64;
const PIECES_MS = CHECK_INTERVAL_MS;
/** A sender that was refused may still be sending; for so long it is listened to, lest it misses the answer. */
const DRAIN_MS = CHECK_INTERVAL_MS;
/** Of all requests that have not come whole, as their heads announce them. Node reads the others. */
const MAX_PARTIAL_BYTES = 16 * 1024 * 1024;

/**
 * Reads requests without the parser, streams and objects of `node:http`, which cost a small delivery as much as all that becomes of it:
 * those that are short, and plain as `readHead` says; of long ones the heads, for who refuses them by those. At the first one that is
 * neither, or that nobody answers here, its connection goes to Node with all that has come, and stays there.
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
  /** How often all connections were looked at. */
  checks: number;
  partialBytes: number;
}

interface Connection extends Pick<FastPath, "closeIdle">, Pick<ReplyTarget, "destroy"> {
  /** Ends what has rested for too long. */
  readonly checkIdle: () => void;
}

/** A request of which not all has come. */
interface PartialRequest {
  readonly head: Head;
  readonly pieces: Buffer[];
  missing: number;
}

const getRequestBytes = ({ bytes, bodyBytes }: Head): number => bytes + bodyBytes;

/** @param onGone told once, when the connection has closed or was left to Node */
function readFrom(socket: Socket, shared: Shared, onGone: () => void): Connection {
  let state: "reading" | "answering" | "flushing" | "ending" | "left" = "reading";
  let wasAnswered = false;
  let hasEnded = false;
  /** The reply to the request under way is the last one. */
  let closes = false;
  /** The body of the request under way is dropped as it comes. */
  let isUnread = false;
  let partialRequest: PartialRequest | undefined;
  let expiresAtCheck = 0;

  const onData = (bytes: Buffer): void => {
    if (state === "reading") read(bytes);
    else if (state !== "ending") pushBack(bytes);
  };

  /** Until the request before is answered: it is read anew then, and the end of what comes behind it. */
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
    // A socket that has closed knows the address of its sender only where it was asked before.
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

  /** @param bytes of the request, and perhaps of others behind it */
  function answer(head: Head, bytes: Buffer): void {
    state = "answering";
    closes = head.closes;
    const end = getRequestBytes(head);
    // In memory of its own: that of a body may be given back at once.
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

  /** Its sender has ended, or is gone: what it is answered, and whether that can be sent, is seen as of all others. */
  function answerIncomplete(request: PartialRequest): void {
    const { head } = request;
    const cut = new PlainRequest(head, takePartialRequest(request).subarray(head.bytes), socket, "cut");
    state = "answering";
    closes = true;
    if (!shared.answer(cut, new PlainReply(target))) end();
  }

  /** Once true it stays so: a reply that says so is followed by the end. */
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

  /** What was answered is sent. */
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
    // Its `close` comes behind it.
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
