import { once } from "node:events";
import { createServer } from "node:net";

/** Below the ephemeral ports, even with 10,000 added for a Redis Cluster's bus port. */
const FROM = 10_000;
const COUNT = 10_000;

/**
 * Returns a free loopback port, for a server that needs its port before it starts.
 * The port is below the ephemeral range, so the system gives it to no other socket in the meantime.
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
