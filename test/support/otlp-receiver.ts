import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import { type LocalServer, listenLocally } from "./local-server.ts";

export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  /** `SpanKind` of the OTLP: 2 is a server, 4 a producer, 5 a consumer. */
  readonly kind: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  /** 2 is an error. */
  readonly status: number;
  readonly resource: Readonly<Record<string, unknown>>;
}

/** A receiver of OTLP over HTTP that decodes the protobuf by its own reader. */
export interface OtlpReceiver extends LocalServer {
  readonly spans: readonly ReceivedSpan[];
  readonly requests: readonly {
    readonly path: string;
    readonly headers: Readonly<Record<string, unknown>>;
  }[];
  /** How the next requests end: accepted, rejected with this status, or without a response. */
  respond: "accept" | "hang" | number;
}

export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const requests: OtlpReceiver["requests"][number][] = [];
  const server = createServer(async (request, response) => {
    const body = await buffer(request);
    requests.push({ path: request.url ?? "", headers: request.headers });
    const { respond } = receiver;
    if (respond === "hang") return;
    if (respond !== "accept") {
      response.writeHead(respond).end();
      return;
    }
    spans.push(...readSpans(request.headers["content-encoding"] === "gzip" ? gunzipSync(body) : body));
    response.writeHead(200, { "content-type": "application/x-protobuf" }).end();
  });
  const receiver: OtlpReceiver = { ...(await listenLocally(server)), spans, requests, respond: "accept" };
  return receiver;
}

/** Reads an `ExportTraceServiceRequest` (opentelemetry/proto/collector/trace/v1). */
function readSpans(request: Buffer): readonly ReceivedSpan[] {
  return parts(request, 1).flatMap((resourceSpans) => {
    const resource = readAttributes(parts(parts(resourceSpans, 1)[0] ?? NONE, 1));
    return parts(resourceSpans, 2)
      .flatMap((scopeSpans) => parts(scopeSpans, 2))
      .map((span) => ({
        traceId: hex(span, 1),
        spanId: hex(span, 2),
        parentSpanId: hex(span, 4),
        name: parts(span, 5).join(""),
        kind: number(span, 6),
        startMs: number(span, 7) / 1e6,
        endMs: number(span, 8) / 1e6,
        attributes: readAttributes(parts(span, 9)),
        links: parts(span, 13).map((link) => ({ traceId: hex(link, 1), spanId: hex(link, 2) })),
        status: number(parts(span, 15)[0] ?? NONE, 3),
        resource,
      }));
  });
}

function readAttributes(keyValues: readonly Buffer[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    keyValues.map((pair) => {
      const value = parts(pair, 2)[0] ?? NONE;
      const [text] = parts(value, 1);
      return [parts(pair, 1).join(""), text === undefined ? number(value, 3) : text.toString()];
    }),
  );
}

const NONE = Buffer.alloc(0);
const parts = (message: Buffer, field: number): readonly Buffer[] =>
  readFields(message).flatMap((one) =>
    one.field === field && Buffer.isBuffer(one.value) ? [one.value] : [],
  );
const hex = (message: Buffer, field: number): string => parts(message, field)[0]?.toString("hex") ?? "";
const number = (message: Buffer, field: number): number =>
  Number(readFields(message).find((one) => one.field === field)?.value ?? 0);

/** Reads the fields of a protobuf message: numbers as `bigint`, everything else as bytes. */
function readFields(message: Buffer): readonly { readonly field: number; readonly value: bigint | Buffer }[] {
  const fields: { field: number; value: bigint | Buffer }[] = [];
  let at = 0;
  const varint = (): bigint => {
    for (let value = 0n, shift = 0n; ; shift += 7n) {
      const byte = message.readUInt8(at++);
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  const bytes = (length: number): Buffer => {
    at += length;
    return message.subarray(at - length, at);
  };
  while (at < message.length) {
    const tag = Number(varint());
    const type = tag & 7;
    const field = tag >> 3;
    if (type === 0) fields.push({ field, value: varint() });
    else if (type === 1) fields.push({ field, value: bytes(8).readBigUInt64LE() });
    else if (type === 5) fields.push({ field, value: BigInt(bytes(4).readUInt32LE()) });
    else fields.push({ field, value: bytes(Number(varint())) });
  }
  return fields;
}
