import type { Config } from "../config/schema.ts";
import { createMetricsApp } from "../http/health.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import { type Listener, type ListenerOptions, startListener } from "./listener.ts";

/** Serves `/metrics` on its own address. */
export async function startMetricsListener(
  address: NonNullable<Config["metricsListen"]>,
  {
    clock,
    log,
    metrics,
    ...options
  }: ListenerOptions & {
    readonly clock: Clock;
    readonly log: Log;
    readonly metrics: Pick<Metrics, "render">;
  },
): Promise<Listener> {
  const listener = await startListener(address, createMetricsApp({ clock, metrics }), options);
  log.info({ event: "metrics.listening", port: listener.port }, "metrics listener is ready");
  return listener;
}
