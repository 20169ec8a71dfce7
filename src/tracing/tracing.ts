import { randomBytes } from "node:crypto";
import type { TraceContext } from "../lib/traceparent.ts";
import type { Log } from "../log.ts";
import { createSampler, type Sampler } from "./sampler.ts";
import type { ExportedSpans, TracingSettings } from "./settings.ts";
import type { FinishedSpan } from "./span.ts";

/** Creates the ids of sampled spans, and exports spans that have ended. */
export interface Tracing extends Sampler {
  /** Queues spans of one trace for the next export. Drops them if the queue is full. */
  readonly record: (...spans: readonly FinishedSpan[]) => void;
}

/**
 * Opens the exporter of spans. The OpenTelemetry packages are only loaded here, so that a gateway without traces neither waits for them nor
 * keeps them in memory.
 *
 * Disposal exports the queued spans, for a few seconds at most.
 */
export async function openTracing(
  settings: TracingSettings,
  deps: { readonly log: Log; readonly onExported: ExportedSpans },
): Promise<Tracing & AsyncDisposable> {
  const { startOtlpExporter } = await import("./otlp-exporter.ts");
  const exporter = startOtlpExporter(settings, deps);
  return {
    ...createSampler(settings.sampler, settings.ratio, Math.random),
    record: exporter.record,
    [Symbol.asyncDispose]: () => exporter[Symbol.asyncDispose](),
  };
}

export const createTraceId = (): string => randomBytes(16).toString("hex");
export const createSpanId = (): string => randomBytes(8).toString("hex");

/** Returns the links to these contexts, without those that are `undefined`. */
export const linksTo = (...contexts: readonly (TraceContext | undefined)[]): readonly TraceContext[] =>
  contexts.filter((context) => context !== undefined);
