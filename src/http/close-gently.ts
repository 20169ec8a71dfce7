import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";

/** How long the rest of a body is read after an early response, in ms. A client that is still sending could otherwise miss the response. */
export const DRAIN_MS = 1_000;

/**
 * Closes a connection whose client may still be sending. Ends our side, then discards what arrives until the client closes its side or
 * `DRAIN_MS` have passed. If the connection was destroyed with unread bytes, TCP would reset it. The client, such as a proxy, could then lose
 * the response.
 */
export function closeGently(socket: Socket): void {
  if (socket.destroyed) return;
  socket.end();
  const timer = setTimeout(() => socket.destroy(), DRAIN_MS).unref();
  socket.once("close", () => clearTimeout(timer));
  socket.resume();
}

/**
 * Makes `node:http` close a connection gently if it responded before the body of a request had arrived.
 *
 * @param currentRequest returns the last request on this connection
 */
export function closeGentlyAfterEarlyResponse(
  socket: Socket,
  currentRequest: () => IncomingMessage | undefined,
): void {
  const destroySoon = socket.destroySoon.bind(socket);
  // `node:http` calls this method after the last response of a connection.
  socket.destroySoon = () => {
    const request = currentRequest();
    if (request === undefined || request.complete) return destroySoon();
    request.resume();
    closeGently(socket);
  };
}
