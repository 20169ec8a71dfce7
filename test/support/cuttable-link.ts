import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A TCP link to a local server that can go silent, like a cut cable: data sent while it is cut does not arrive. */
export interface CuttableLink extends AsyncDisposable {
  readonly port: number;
  readonly cut: () => void;
  /** Restores the link. Data in flight at the cut is lost. */
  readonly restore: () => void;
  /** Returns the client's port of the connection that reaches the server from `port`. */
  readonly findClientPort: (port: number) => number | undefined;
}

export async function startCuttableLink(toPort: number): Promise<CuttableLink> {
  const open = new Set<Socket>();
  const clientPorts = new Map<number, number | undefined>();
  let isCut = false;
  const server = createServer((near) => {
    const far = connect(toPort, "127.0.0.1", () => clientPorts.set(far.localPort ?? 0, near.remotePort));
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(from);
      from.on("data", (chunk) => {
        if (!isCut) to.write(chunk);
      });
      from.on("error", () => to.destroy());
      from.on("close", () => {
        open.delete(from);
        if (!isCut) to.destroy();
      });
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    cut() {
      isCut = true;
    },
    restore() {
      for (const socket of open) socket.destroy();
      isCut = false;
    },
    findClientPort: (port) => clientPorts.get(port),
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
