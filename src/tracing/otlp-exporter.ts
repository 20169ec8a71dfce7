import { SpanKind, SpanStatusCode, TraceFlags } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { type Resource, resourceFromAttributes } from "@opentelemetry/resources";
import type { ReadableSpan } from "@opentelemetry/sdk-trace";
import { endsWithin } from "../lib/sleep.ts";
import type { Log } from "../log.ts";
import type { ExportedSpans, TracingSettings } from "./settings.ts";
import type { FinishedSpan, SpanKindName } from "./span.ts";

/** Maximum number of waiting spans. A receiver that fails costs no more memory than these. */
const MAX_QUEUED = 2_048;
const MAX_BATCH = 512;
/** Maximum time of one export with its retries, in ms. */
const EXPORT_TIMEOUT_MS = 5_000;
/** Maximum time for which a stopping gateway exports the spans of its last requests, in ms. */
const FLUSH_MS = 3_000;

/** Starts an exporter that sends spans in batches, one batch at a time. */
export function startOtlpExporter(
  settings: Omit<TracingSettings, "sampler" | "ratio">,
  { log, onExported }: { readonly log: Log; readonly onExported: ExportedSpans },
) {
  const exporter = new OTLPTraceExporter({
    url: `${settings.endpoint}/v1/traces`,
    headers: settings.headers,
    timeoutMillis: EXPORT_TIMEOUT_MS,
    concurrencyLimit: 1,
  });
  const resource = resourceFromAttributes({
    "service.name": settings.serviceName,
    ...settings.resourceAttributes,
  });
  const queue: ReadableSpan[] = [];
  let isFailing = false;
  let isStopping = false;
  let exporting: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;

  function note(error: Error | undefined): void {
    if (error === undefined) {
      if (isFailing) log.info({ event: "traces.exported" }, "traces are exported again");
    } else if (!isFailing) {
      log.warn({ event: "traces.failing", err: error }, "traces cannot be exported; spans are dropped");
    }
    isFailing = error !== undefined;
  }

  async function exportBatch(spans: number): Promise<void> {
    const batch = queue.splice(0, spans);
    const { promise, resolve } = Promise.withResolvers<Error | undefined>();
    exporter.export(batch, ({ code, error }) =>
      resolve(code === 0 ? undefined : (error ?? new Error("the OTLP receiver rejected the spans"))),
    );
    const error = await promise;
    onExported(error === undefined ? "exported" : "failed", batch.length);
    note(error);
  }

  /** Exports the spans that wait now. Those that arrive meanwhile wait for the next export, because each one costs as much CPU as many spans. */
  async function exportWaiting(): Promise<void> {
    for (let left = queue.length; left > 0; left -= MAX_BATCH) await exportBatch(Math.min(left, MAX_BATCH));
    exporting = undefined;
    if (queue.length > 0) schedule();
  }

  function start(): void {
    clearTimeout(timer);
    timer = undefined;
    exporting = exportWaiting();
  }

  function schedule(): void {
    if (exporting !== undefined || isStopping) return;
    if (queue.length >= MAX_BATCH) start();
    else timer ??= setTimeout(start, settings.scheduleDelayMs).unref();
  }

  async function exportAll(): Promise<void> {
    isStopping = true;
    clearTimeout(timer);
    await exporting;
    while (queue.length > 0) await exportBatch(MAX_BATCH);
  }

  return {
    record(...spans: readonly FinishedSpan[]): void {
      if (queue.length + spans.length > MAX_QUEUED) {
        onExported("dropped", spans.length);
        return;
      }
      // The clock of the system may be set at any time, so the spans of one call share their offset to it.
      const offsetMs = Date.now() - performance.now();
      for (const span of spans) queue.push(toReadableSpan(span, resource, offsetMs));
      schedule();
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await endsWithin(FLUSH_MS, exportAll());
      if (queue.length > 0) onExported("dropped", queue.splice(0).length);
      exporter.shutdown().catch(() => {});
    },
  };
}

const SCOPE = { name: "inlet" };
const KINDS: Readonly<Record<SpanKindName, SpanKind>> = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
};

function toReadableSpan(span: FinishedSpan, resource: Resource, offsetMs: number): ReadableSpan {
  const { traceId, spanId, parentSpanId, startMs, endMs } = span;
  const toContext = (ids: { readonly traceId: string; readonly spanId: string }) => ({
    traceId: ids.traceId,
    spanId: ids.spanId,
    traceFlags: TraceFlags.SAMPLED,
  });
  const own = toContext({ traceId, spanId });
  return {
    name: span.name,
    kind: KINDS[span.kind],
    spanContext: () => own,
    ...(parentSpanId !== undefined && { parentSpanContext: toContext({ traceId, spanId: parentSpanId }) }),
    startTime: toHrTime(startMs + offsetMs),
    endTime: toHrTime(endMs + offsetMs),
    duration: toHrTime(endMs - startMs),
    status: { code: span.isFailed ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
    attributes: { ...span.attributes },
    links: span.links.map((linked) => ({ context: toContext(linked) })),
    events: [],
    ended: true,
    resource,
    instrumentationScope: SCOPE,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

function toHrTime(ms: number): [seconds: number, nanoseconds: number] {
  const seconds = Math.floor(ms / 1_000);
  return [seconds, Math.round((ms - seconds * 1_000) * 1e6)];
}
