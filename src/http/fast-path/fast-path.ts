import type { Socket } from "node:net";
import {
  CHECK_INTERVAL_MS,
  type Connection,
  type FastPathDeps,
  readFrom,
  type Shared,
} from "./connection.ts";

/** Handles the requests of a connection until `node:http` must take over. */
export interface FastPath {
  readonly take: (socket: Socket) => void;
  /** Makes every further response close its connection. */
  readonly answerLast: () => void;
  /**
   * Closes connections that are waiting for another request. Connections with an incomplete first request are handed off to `node:http`.
   */
  readonly closeIdle: () => void;
  readonly closeAll: () => void;
}

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
