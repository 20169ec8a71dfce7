import type { Socket } from "node:net";
import type { Config } from "../config/schema.ts";
import { startListener } from "../gateway/listener.ts";
import { createStartingApp } from "../http/starting-app.ts";
import { createMetrics } from "../metrics.ts";

/** Responds to connections that no process can take. */
export interface StartingResponder extends AsyncDisposable {
  readonly take: (socket: Socket) => void;
}

/**
 * Responds with 503 while no process runs, so that a probe need not wait until one has started. Closes each connection after its response, so
 * that the next request of the client reaches a process.
 *
 * @param reason returns the reason for the response of `/readyz`
 */
export async function createStartingResponder(
  config: Pick<Config, "host" | "port" | "metricsToken">,
  reason: () => string,
): Promise<StartingResponder> {
  const { metricsToken } = config;
  const running = { name: "running", check: () => ({ ok: false, reason: reason() }) } as const;
  const respond = createStartingApp({
    clock: Date.now,
    health: { metrics: createMetrics(), metricsToken, checks: [running] },
  });
  const open = new Set<Socket>();
  let receive: ((socket: Socket) => void) | undefined;
  const listener = await startListener(
    config,
    async (...request) => {
      const response = await respond(...request);
      response.headers.set("connection", "close");
      return response;
    },
    {
      connections: {
        port: config.port,
        open,
        receive(take) {
          receive = take;
        },
      },
    },
  );
  return {
    take(socket) {
      open.add(socket);
      socket.once("close", () => open.delete(socket));
      receive?.(socket);
      // The supervisor accepts all connections paused.
      socket.resume();
    },
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  };
}
