import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import type { Config } from "../config.ts";
import type { App, Fetch } from "../http/context.ts";
import { createFastPath, type FastPath } from "../http/fast-path/fast-path.ts";

/** A bound port. Disposal closes the port. */
export interface Listener extends AsyncDisposable {
  readonly port: number;
  /**
   * Serves `app` from now on. Disposing the result drains the listener in two steps. First it waits for `beforeClosing`, and during that
   * time each response closes its connection. Then it accepts no more connections and completes the requests in flight, for at most
   * `DRAIN_MS`.
   */
  readonly serve: (app: App, beforeClosing?: () => Promise<unknown>) => AsyncDisposable;
}

const HEADERS_TIMEOUT_MS = 20_000;
/**
 * Maximum time for a client to send a whole request. It is enough for a body of 25 MiB over a slow line. A slower sender would only occupy
 * a connection.
 */
const REQUEST_TIMEOUT_MS = 60_000;
/**
 * Idle timeout of a connection. It is longer than that of common load balancers (60 s), which could otherwise send a request into a closing
 * connection.
 */
const KEEP_ALIVE_MS = 75_000;
/** Suggested actions if an address cannot be bound, by the system's error code. */
const SUGGESTIONS: Readonly<Record<string, string>> = {
  EADDRINUSE:
    "another program uses this port: stop it, or set INLET_PORT to another port (0 chooses a free one)",
  EACCES: "this user must not listen on this port: set INLET_PORT to 1024 or higher",
  EADDRNOTAVAIL:
    "this machine does not have this address: set INLET_HOST to one of its addresses, or to 0.0.0.0 for all",
};
const DRAIN_MS = 20_000;
const DRAIN_POLL_MS = 25;

/**
 * Binds the port (0 chooses a free one). If that fails, rejects with an error that says how to fix the problem. The cause of that error is
 * the system's error, such as `EADDRINUSE` or `EACCES`.
 *
 * @param starting handles requests until `serve` is called
 */
export async function startListener(
  { host, port }: Pick<Config, "host" | "port">,
  starting: Fetch,
): Promise<Listener> {
  let serving: App = { fetch: starting };
  const answer = getRequestListener((request, bindings) => serving.fetch(request, bindings as HttpBindings));
  const server = createServer((incoming, outgoing) => {
    if (!serving.answerDirectly?.(incoming, outgoing)) void answer(incoming, outgoing);
  });
  // Node's own handlers of new connections. They are read from the event listeners, because Node has no public API for them.
  const nodeConnectionListeners = server.listeners("connection");
  const fastPath = createFastPath({
    answer: (request, reply) => serving.answerDirectly?.(request, reply) ?? false,
    handOffToNode: (socket) => {
      for (const take of nodeConnectionListeners) take.call(server, socket);
    },
    firstRequestMs: HEADERS_TIMEOUT_MS,
    keepAliveMs: KEEP_ALIVE_MS,
  });
  server.removeAllListeners("connection");
  server.on("connection", fastPath.take);
  server.headersTimeout = HEADERS_TIMEOUT_MS;
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.listen({ host, port });
  try {
    await once(server, "listening");
  } catch (cause) {
    const { code = "" } = cause as NodeJS.ErrnoException;
    throw new Error(SUGGESTIONS[code] ?? `cannot listen on port ${port} of ${host}`, { cause });
  }
  return {
    port: (server.address() as AddressInfo).port,
    serve(app, beforeClosing) {
      serving = app;
      return {
        async [Symbol.asyncDispose]() {
          server.prependListener("request", (_, response) => response.setHeader("connection", "close"));
          fastPath.answerLast();
          await beforeClosing?.();
          await drain(server, fastPath);
        },
      };
    },
    [Symbol.asyncDispose]: () => drain(server, fastPath),
  };
}

async function drain(server: Server, fastPath: FastPath): Promise<void> {
  if (!server.listening) return;
  let closed = false;
  server.close(() => {
    closed = true;
  });
  const deadline = performance.now() + DRAIN_MS;
  while (!closed && performance.now() < deadline) {
    // Called after each last response, because a keep-alive connection is not idle before that.
    server.closeIdleConnections();
    fastPath.closeIdle();
    await delay(DRAIN_POLL_MS);
  }
  server.closeAllConnections();
  fastPath.closeAll();
}
