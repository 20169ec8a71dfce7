import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { PassedConnections } from "./machine.ts";

/** Source of a server's connections. */
export interface Accepting {
  readonly port: number;
  /** Accepts no more connections. The result returns true when all connections are closed. Returns `undefined` if already closed. */
  readonly close: () => (() => boolean) | undefined;
}

/** Binds the port. Rejects with the system error. */
export async function acceptFromPort(
  server: Server,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<Accepting> {
  server.listen({ host, port });
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      if (!server.listening) return undefined;
      let closed = false;
      server.close(() => {
        closed = true;
      });
      return () => closed;
    },
  };
}

/** Receives connections from the supervisor, which holds the port. */
export function acceptFromSupervisor(server: Server, { port, open, receive }: PassedConnections): Accepting {
  let isClosed = false;
  // `node:http` starts to enforce its timeouts at this event.
  server.emit("listening");
  receive((socket) => {
    // A client may end its side before it has read the response. `node:http` sets this for connections that it accepts itself.
    socket.allowHalfOpen = true;
    server.emit("connection", socket);
  });
  return {
    port,
    close() {
      if (isClosed) return undefined;
      isClosed = true;
      server.close();
      return () => open.size === 0;
    },
  };
}
