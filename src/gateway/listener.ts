import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { createAdaptorServer, type HttpBindings } from "@hono/node-server";

export interface ListenerOptions {
  readonly fetch: (request: Request, bindings: HttpBindings) => Response | Promise<Response>;
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
}

/** The open door. Disposal drains it: nobody new, everybody inside is answered, at most `DRAIN_MS` long. */
export interface Listener extends AsyncDisposable {
  readonly port: number;
}

const HEADERS_TIMEOUT_MS = 20_000;
/** A body of 25 MiB over a slow line; what is slower holds a connection for nothing. */
const REQUEST_TIMEOUT_MS = 60_000;
/** Longer than the idle time of common load balancers (60 s), or they would send into a closing connection. */
const KEEP_ALIVE_MS = 75_000;
const DRAIN_MS = 20_000;
const DRAIN_POLL_MS = 25;

/** Listens, or rejects with the system's error (`EADDRINUSE`, `EACCES`). */
export async function startListener({ fetch, host, port }: ListenerOptions): Promise<Listener> {
  // Without HTTP/2 options the adaptor makes a plain HTTP/1.1 server.
  const server = createAdaptorServer({
    fetch: (request, bindings) => fetch(request, bindings as HttpBindings),
  }) as Server;
  server.headersTimeout = HEADERS_TIMEOUT_MS;
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.listen({ host, port });
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: () => drain(server),
  };
}

async function drain(server: Server): Promise<void> {
  if (!server.listening) return;
  let closed = false;
  server.close(() => {
    closed = true;
  });
  const deadline = performance.now() + DRAIN_MS;
  while (!closed && performance.now() < deadline) {
    // A kept-alive connection whose request has just been answered is idle only now.
    server.closeIdleConnections();
    await delay(DRAIN_POLL_MS);
  }
  server.closeAllConnections();
}
