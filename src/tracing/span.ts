import type { TraceContext } from "../lib/traceparent.ts";

export type SpanKindName = "internal" | "server" | "client" | "producer" | "consumer";

/** A span that has ended. Its name and attributes contain neither payloads nor credentials. */
export interface FinishedSpan {
  readonly name: string;
  readonly kind: SpanKindName;
  readonly traceId: string;
  readonly spanId: string;
  /** `undefined` for the root of a trace. */
  readonly parentSpanId: string | undefined;
  readonly links: readonly TraceContext[];
  /** Start and end in milliseconds of `performance.now()`. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  readonly isFailed: boolean;
}
