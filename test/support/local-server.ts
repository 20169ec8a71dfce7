import { once } from "node:events";
import { Server as HttpServer } from "node:http";
import type { AddressInfo, Server } from "node:net";

/** A server that listens on a free port of this machine. Disposal closes it with its connections. */
export interface LocalServer extends AsyncDisposable {
  readonly origin: string;
  readonly port: number;
}

export async function listenLocally(server: Server): Promise<LocalServer> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    port,
    async [Symbol.asyncDispose]() {
      if (server instanceof HttpServer) server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
