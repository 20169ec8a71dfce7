import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { type Config, DEFAULT_HEADER_BYTES } from "../config/schema.ts";
import { closeGentlyAfterEarlyResponse } from "../http/close-gently.ts";
import type { App, Fetch } from "../http/context.ts";
import { createFastPath, type FastPath } from "../http/fast-path/fast-path.ts";
import { createInvalidRequests, type InvalidRequestsOptions } from "../http/invalid-requests.ts";
import { type Accepting, acceptFromPort, acceptFromSupervisor } from "./accepting.ts";
import type { PassedConnections } from "./machine.ts";

export interface Listener extends AsyncDisposable {
  readonly port: number;
  /**
   * Sends all further requests to `app`. Disposal closes each connection after its next response. New connections are accepted until
   * `beforeClosing` resolves, and requests in flight then have up to `DRAIN_MS` to complete.
   */
  readonly serve: (app: App, beforeClosing?: () => Promise<unknown>) => AsyncDisposable;
}

export interface ListenerOptions extends Partial<Pick<InvalidRequestsOptions, "onInvalid">> {
  /** Connections of a supervisor, instead of those to the port. */
  readonly connections?: PassedConnections | undefined;
}

const HEADERS_TIMEOUT_MS = 20_000;
/** Maximum time for receiving a whole request, in ms. It is enough for 25 MiB on a slow connection. */
const REQUEST_TIMEOUT_MS = 60_000;
/**
 * Time in ms after which an idle connection is closed. It exceeds the 60 s of common load balancers, which must close idle connections
 * first.
 */
const KEEP_ALIVE_MS = 75_000;
/** Suggested fix for each system error code with which binding the port can fail. */
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
 * Binds the port (0 chooses a free port). On failure, rejects with an error that suggests a fix and has the system error as its cause.
 *
 * @param starting handles requests until `serve` is called
 */
export async function startListener(
  {
    host,
    port,
    hookFastPath = true,
    maxHeaderBytes = DEFAULT_HEADER_BYTES,
  }: Pick<Config, "host" | "port"> & Partial<Pick<Config, "hookFastPath" | "maxHeaderBytes">>,
  starting: Fetch,
  { onInvalid = () => {}, connections }: ListenerOptions = {},
): Promise<Listener> {
  let serving: App = { fetch: starting };
  const invalid = createInvalidRequests({ maxHeaderBytes, onInvalid });
  const answer = getRequestListener((request, bindings) => serving.fetch(request, bindings as HttpBindings), {
    // Host of the URL if a request names none, as HTTP/1.0 allows. Without it, such requests would be rejected.
    hostname: "localhost",
    errorHandler: invalid.toResponse,
  });
  /** The last request of each connection. */
  const latest = new WeakMap<
    Socket,
    { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse }
  >();
  const server = createServer(
    // Otherwise Node rejects requests without `Host` itself, without a body.
    { maxHeaderSize: maxHeaderBytes, requireHostHeader: false },
    (incoming, outgoing) => {
      latest.set(incoming.socket, { incoming, outgoing });
      if (incoming.headers.host === undefined && incoming.httpVersion === "1.1")
        invalid.rejectWithout("the header Host is missing", outgoing);
      else void answer(incoming, outgoing);
    },
  );
  server.on("checkExpectation", (_, outgoing: ServerResponse) =>
    invalid.rejectWithout("the only supported value of the header Expect is 100-continue", outgoing, 417),
  );
  server.on("clientError", (error, socket: Socket) =>
    invalid.rejectUnparsed(error, socket, latest.get(socket)?.outgoing),
  );
  // Node's own handlers of new connections. Node has no public API for them, so they are read from the event listeners.
  const nodeConnectionListeners = server.listeners("connection");
  /** `undefined` until an app is served that receives webhooks. */
  let fastPath: FastPath | undefined;
  function handOffToNode(socket: Socket): void {
    closeGentlyAfterEarlyResponse(socket, () => latest.get(socket)?.incoming);
    for (const take of nodeConnectionListeners) take.call(server, socket);
  }
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    if (fastPath === undefined) handOffToNode(socket);
    else fastPath.take(socket);
  });
  server.headersTimeout = HEADERS_TIMEOUT_MS;
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  const accepting = connections
    ? acceptFromSupervisor(server, connections)
    : await acceptFromPort(server, { host, port }).catch((cause: unknown) => {
        throw explainBindError(cause, { host, port });
      });
  return {
    port: accepting.port,
    serve(app, beforeClosing) {
      serving = app;
      if (hookFastPath && app.receiveHook !== undefined)
        fastPath = createFastPath({
          receive: app.receiveHook,
          handOffToNode,
          firstRequestMs: HEADERS_TIMEOUT_MS,
          keepAliveMs: KEEP_ALIVE_MS,
          bodyMs: REQUEST_TIMEOUT_MS,
          rejectLate: invalid.rejectLate,
        });
      return {
        async [Symbol.asyncDispose]() {
          server.prependListener("request", (_, response) => response.setHeader("connection", "close"));
          fastPath?.answerLast();
          await beforeClosing?.();
          await drain(accepting, server, fastPath);
        },
      };
    },
    [Symbol.asyncDispose]: () => drain(accepting, server, fastPath),
  };
}

/** Returns an error that suggests a fix for a port that cannot be bound. */
export function explainBindError(
  cause: unknown,
  { host, port }: { readonly host: string; readonly port: number },
): Error {
  const { code = "" } = cause as NodeJS.ErrnoException;
  return new Error(SUGGESTIONS[code] ?? `cannot listen on port ${port} of ${host}`, { cause });
}

async function drain(accepting: Accepting, server: Server, fastPath: FastPath | undefined): Promise<void> {
  const isClosed = accepting.close();
  if (isClosed === undefined) return;
  const deadline = performance.now() + DRAIN_MS;
  while (!isClosed() && performance.now() < deadline) {
    // A connection whose last response was sent during shutdown is now idle, so it can be closed.
    server.closeIdleConnections();
    fastPath?.closeIdle();
    await delay(DRAIN_POLL_MS);
  }
  server.closeAllConnections();
  fastPath?.closeAll();
}
