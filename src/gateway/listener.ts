import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import type { Config } from "../config.ts";
import type { App, Fetch } from "../http/context.ts";
import { createFastPath, type FastPath } from "../http/fast-path/fast-path.ts";

/** A bound port. Disposal closes it. */
export interface Listener extends AsyncDisposable {
  readonly port: number;
  /**
   * Answers by this from now on. Disposal of what it returns drains. Until `beforeClosing` has resolved, each answer is the last of
   * its connection; then no connection is taken any more, and every request under way is answered, at most `DRAIN_MS` long.
   */
  readonly serve: (app: App, beforeClosing?: () => Promise<unknown>) => AsyncDisposable;
}

const HEADERS_TIMEOUT_MS = 20_000;
/** A body of 25 MiB over a slow line; what is slower holds a connection for nothing. */
const REQUEST_TIMEOUT_MS = 60_000;
/** Longer than the idle time of common load balancers (60 s), or they would send into a closing connection. */
const KEEP_ALIVE_MS = 75_000;
/** What a person does about an address that cannot be listened on, by the system's error. */
const SUGGESTIONS: Readonly<Record<string, string>> = {
  EADDRINUSE:
    "another program has this port: end it, or set INLET_PORT to another one (0 takes any that is free)",
  EACCES: "this user may not listen on this port: set INLET_PORT to 1024 or a higher one",
  EADDRNOTAVAIL:
    "this machine does not have this address: set INLET_HOST to one of its own, or to 0.0.0.0 for all of them",
};
const DRAIN_MS = 20_000;
const DRAIN_POLL_MS = 25;

/**
 * Listens (port 0: any free one), or rejects with what to do; the cause is the system's error (`EADDRINUSE`, `EACCES`).
 *
 * @param starting answers until it serves
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
  // Node's own way of taking a connection. It cannot be asked for by another name.
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
    // A kept-alive connection whose request has just been answered is idle only now.
    server.closeIdleConnections();
    fastPath.closeIdle();
    await delay(DRAIN_POLL_MS);
  }
  server.closeAllConnections();
  fastPath.closeAll();
}
