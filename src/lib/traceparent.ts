/** Position in a trace: a span, by its ids in hexadecimal (W3C Trace Context). */
export interface TraceContext {
  readonly traceId: string;
  readonly spanId: string;
  /** Whether the sender of the context has sampled the trace. */
  readonly isSampled: boolean;
}

/**
 * Returns the value of a `traceparent` header (W3C Trace Context section 3.2). Returns `undefined` if the header is invalid or
 * repeated.
 */
export function validTraceparent(header: string | readonly string[] | undefined): string | undefined {
  if (typeof header !== "string") return undefined;
  const isValid =
    /^(?!ff)[\da-f]{2}-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}(?:-.*)?$/.test(header) &&
    (header.length === 55 || !header.startsWith("00"));
  return isValid ? header : undefined;
}

/** Returns the context in a `traceparent` header. Returns `undefined` under the same conditions as `validTraceparent`. */
export function parseTraceparent(header: string | readonly string[] | undefined): TraceContext | undefined {
  const valid = validTraceparent(header);
  if (valid === undefined) return undefined;
  const [, traceId = "", spanId = "", flags = ""] = valid.split("-");
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** Formats the context of a sampled span as a `traceparent` header. */
export const formatTraceparent = ({ traceId, spanId }: Omit<TraceContext, "isSampled">): string =>
  `00-${traceId}-${spanId}-01`;
