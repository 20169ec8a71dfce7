import type { Config } from "../config/schema.ts";
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import { openTracing } from "../tracing/tracing.ts";

/** Opens the export of traces. Returns `undefined` if the settings name no receiver. */
export async function openGatewayTracing(
  config: Config,
  { metrics, log }: { readonly metrics: Pick<Metrics, "spans">; readonly log: Log },
) {
  const { otlpEndpoint: endpoint } = config;
  if (endpoint === undefined) return undefined;
  return openTracing(
    {
      endpoint,
      headers: config.otlpHeaders,
      sampler: config.tracesSampler,
      ratio: config.tracesSamplerArg,
      serviceName: config.otelServiceName,
      resourceAttributes: config.otelResourceAttributes,
      scheduleDelayMs: config.otelScheduleDelayMs,
    },
    { log, onExported: (result, count) => metrics.spans.inc({ result }, count) },
  );
}
