import { once } from "node:events";
import { createServer } from "node:net";

/** Below the ports that systems give away by themselves, also once 10,000 is added, as a Cluster's own bus does. */
const FROM = 10_000;
const COUNT = 10_000;

/**
 * A port of the loopback that is free now, for a server that is told where to listen before it can say which it got. No socket
 * that is opened meanwhile on any port, by whichever process, is given this one.
 */
export async function freePort(): Promise<number> {
  const port = FROM + Math.floor(Math.random() * COUNT);
  const server = createServer().listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") return freePort();
    throw error;
  }
  server.close();
  await once(server, "close");
  return port;
}
