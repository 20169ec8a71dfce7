import type { Socket } from "node:net";
import { type ReplyTarget, WholeReply } from "./whole-reply.ts";
import { type Head, readHead, WholeRequest } from "./whole-request.ts";

export interface FastPathDeps {
  /** Answers a request, or says that it is not its own: then nothing has become of it. */
  readonly answer: (request: WholeRequest, reply: WholeReply) => boolean;
  /** Takes a connection over for good; what has come on it and was not answered is read there anew. */
  readonly leaveToNode: (socket: Socket) => void;
  /** How long a new connection may say nothing. */
  readonly firstRequestMs: number;
  /** How long it may rest once a request of it was answered. */
  readonly keepAliveMs: number;
}

/** Timers of their own would cost each request a fiftieth of its time: all connections are looked at once a second. */
const LOOK_MS = 1_000;

/** Reads the requests of connections, until it leaves them to Node. */
export interface FastPath {
  readonly take: (socket: Socket) => void;
  /** Each answer is the last of its connection from now on. */
  readonly answerLast: () => void;
  /** Ends those that no request has come on, or none that is not answered. */
  readonly closeIdle: () => void;
  readonly closeAll: () => void;
}

/** Head and body. As much as a socket reads at once. */
const MOST_BYTES = 64 * 1024;
/** What comes in more pieces, or is not whole after so long, has a slow sender: Node has clocks for those. */
const MOST_PIECES = 64;
const PIECES_MS = LOOK_MS;
const BAD_REQUEST = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";

/**
 * Reads requests without the parser, streams and objects of `node:http`, which cost a small delivery as much as all that becomes of it:
 * those that are short, and plain as `readHead` says. At the first one that is not, or that nobody answers here, its connection goes to
 * Node with all that has come, and stays there.
 */
export function createFastPath(deps: FastPathDeps): FastPath {
  const connections = new Set<Connection>();
  const rules: Rules = {
    ...deps,
    keepAlive: `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(deps.keepAliveMs / 1_000)}\r\n`,
    isLast: false,
    looks: 0,
  };
  const looking = setInterval(() => {
    rules.looks++;
    for (const connection of connections) connection.look();
  }, LOOK_MS);
  looking.unref();
  return {
    take(socket) {
      const connection = readFrom(socket, rules, () => connections.delete(connection));
      connections.add(connection);
    },
    answerLast() {
      rules.isLast = true;
    },
    closeIdle() {
      for (const connection of connections) connection.closeIdle();
    },
    closeAll() {
      clearInterval(looking);
      for (const connection of connections) connection.destroy();
    },
  };
}

interface Rules extends FastPathDeps {
  readonly keepAlive: string;
  isLast: boolean;
  /** How often all connections were looked at. */
  looks: number;
}

interface Connection extends Pick<FastPath, "closeIdle">, Pick<ReplyTarget, "destroy"> {
  /** Ends what has rested for too long. */
  readonly look: () => void;
}

/** A request of which not all has come. */
interface Begun {
  readonly head: Head;
  readonly pieces: Buffer[];
  missing: number;
}

/** @param onGone told once, when the connection has closed or was left to Node */
function readFrom(socket: Socket, rules: Rules, onGone: () => void): Connection {
  let isAnswering = false;
  let hasEnded = false;
  let closes = false;
  let begun: Begun | undefined;
  /** Came behind a request that is not answered yet. */
  let next: Buffer | undefined;
  let restsUntil = 0;

  const onData = (bytes: Buffer): void => {
    if (!isAnswering) {
      read(bytes);
      return;
    }
    next = next === undefined ? bytes : Buffer.concat([next, bytes]);
    socket.pause();
  };

  function read(bytes: Buffer): void {
    if (begun !== undefined) {
      addPiece(begun, bytes);
      return;
    }
    const head = readHead(bytes);
    const missing = head === undefined ? Number.NaN : head.bytes + head.bodyBytes - bytes.length;
    if (head !== undefined && missing === 0) answer(head, bytes);
    else if (head !== undefined && missing > 0 && bytes.length + missing <= MOST_BYTES) {
      begun = { head, pieces: [bytes], missing };
      restFor(PIECES_MS);
    } else leave(bytes);
  }

  function addPiece(request: Begun, piece: Buffer): void {
    const { head, pieces } = request;
    pieces.push(piece);
    request.missing -= piece.length;
    if (request.missing === 0) answer(head, takeBegun(request));
    else if (request.missing < 0 || pieces.length === MOST_PIECES) leave(takeBegun(request));
  }

  function takeBegun({ pieces }: Begun): Buffer {
    begun = undefined;
    return Buffer.concat(pieces);
  }

  function answer(head: Head, bytes: Buffer): void {
    isAnswering = true;
    closes = head.closes;
    const request = new WholeRequest(head, bytes.subarray(head.bytes), socket);
    if (rules.answer(request, new WholeReply(target))) return;
    isAnswering = false;
    leave(bytes);
  }

  const isLast = (): boolean => rules.isLast || hasEnded || closes;
  const target: ReplyTarget = {
    connectionHeaders: () => (isLast() ? "Connection: close\r\n" : rules.keepAlive),
    reply(text) {
      if (socket.destroyed) return;
      if (socket.write(text)) goOn();
      else socket.once("drain", goOn);
    },
    destroy: () => socket.destroy(),
  };

  function goOn(): void {
    isAnswering = false;
    if (isLast()) {
      socket.destroySoon();
      return;
    }
    restFor(rules.keepAliveMs);
    if (next === undefined) return;
    const bytes = next;
    next = undefined;
    read(bytes);
    socket.resume();
  }

  function restFor(ms: number): void {
    restsUntil = rules.looks + Math.ceil(ms / LOOK_MS);
  }

  function leave(bytes: Buffer): void {
    // Nothing can be put back behind the end. What has come is no request, or not all of one.
    if (hasEnded) {
      socket.end(BAD_REQUEST);
      return;
    }
    onGone();
    for (const [event, listener] of listeners) socket.off(event, listener);
    socket.unshift(bytes);
    rules.leaveToNode(socket);
    socket.resume();
  }

  const onEnd = (): void => {
    hasEnded = true;
    if (begun !== undefined) leave(takeBegun(begun));
    else if (!isAnswering) socket.end();
  };
  const listeners = [
    ["data", onData],
    ["end", onEnd],
    ["close", onGone],
    // Its `close` comes behind it.
    ["error", () => {}],
  ] as const;
  for (const [event, listener] of listeners) socket.on(event, listener);
  restFor(rules.firstRequestMs);

  function closeIdle(): void {
    if (begun !== undefined) leave(takeBegun(begun));
    else if (!isAnswering) socket.destroy();
  }

  return {
    closeIdle,
    look() {
      if (rules.looks > restsUntil) closeIdle();
    },
    destroy: target.destroy,
  };
}
