import type { IncomingMessage } from "node:http";
import type { ChannelHandle } from "../../event/ingest.ts";
import type { RawRequest } from "../../event/received.ts";
import { ValueCollector, type Values } from "../../event/values.ts";
import type { Incoming } from "../../http/context.ts";
import { PlainRequest } from "../../http/fast-path/plain-request.ts";
import { type ApiError, createApiError, type ErrorResponse, invalidParameters } from "../../http/problem.ts";
import { freeBuffer } from "../../lib/free-buffer.ts";
import type { HeldBody } from "../body-budget.ts";
import { concatAndFree, createBudgetError, decodeBody, findDecoder, payloadTooLarge } from "./decode-body.ts";

const NO_BYTES = Buffer.alloc(0);

type Arrival = Required<Pick<RawRequest, "arrivedAtMs" | "clientAddress" | "requestId">>;

/**
 * Callbacks for the result of reading. Exactly one of them is called, exactly once. A promise would cost as much per delivery as parsing
 * its JSON.
 */
export interface ReadCallbacks<T> {
  readonly done: (value: T) => void;
  readonly failed: (error: unknown) => void;
}

/**
 * Returns a 413 or 415 response if the request head alone is reason to reject the request. The response is returned instead of thrown, so
 * that a flood of such requests stays cheap.
 */
export function findHeadRejection({ headers }: Incoming, channel: ChannelHandle): ErrorResponse | undefined {
  if (!channel.acceptsContentType(headers["content-type"])) {
    return unsupported("This Content-Type is not accepted.");
  }
  const { maxBodyBytes } = channel.limits;
  return Number(headers["content-length"] ?? 0) > maxBodyBytes ? payloadTooLarge(maxBodyBytes) : undefined;
}

/**
 * Reads one request to a push channel within the channel's limits. The caller must have checked the request with `findHeadRejection`. This
 * function does not use a web `Request`, which would cost about 50 µs more.
 *
 * On failure, `failed` is called with an error response. 413 and 415 reject the size and the encoding of the body. 503 means that the
 * memory budget is used up. 400 means that the body is incomplete or does not match its `Content-Encoding`.
 */
export function readDelivery(
  incoming: Incoming,
  channel: ChannelHandle,
  { arrivedAtMs, clientAddress, requestId }: Arrival,
  held: HeldBody,
  { done, failed }: ReadCallbacks<RawRequest>,
): void {
  const { method = "POST", url = "/" } = incoming;
  readBody(incoming, channel.limits.maxBodyBytes, held, {
    done: (body) =>
      done({
        method,
        target: url,
        headers: readHeaderValues(incoming),
        body,
        arrivedAtMs,
        clientAddress,
        requestId,
      }),
    failed,
  });
}

/**
 * Reads and decodes a request body. `maxBytes` limits both the encoded and the decoded size.
 *
 * @param held the body's share of the memory budget. The body stays charged to it after this function returns.
 */
function readBody(
  request: Incoming,
  maxBytes: number,
  held: HeldBody,
  callbacks: ReadCallbacks<Buffer>,
): void {
  const encoding = request.headers["content-encoding"]?.trim().toLowerCase() ?? "";
  if (encoding === "" || encoding === "identity") {
    readBytes(request, maxBytes, held, callbacks);
    return;
  }
  const createDecoder = findDecoder(encoding);
  if (createDecoder === undefined) {
    callbacks.failed(createApiError(unsupported("This Content-Encoding is not accepted.")));
    return;
  }
  readBytes(request, maxBytes, held, {
    done(packed) {
      const decoding = decodeBody(packed, { encoding, maxBytes, createDecoder, held }).then((body) => {
        freeBuffer(packed);
        callbacks.done(body);
      });
      decoding.catch(callbacks.failed);
    },
    failed: callbacks.failed,
  });
}

function readBytes(
  request: Incoming,
  maxBytes: number,
  held: HeldBody,
  callbacks: ReadCallbacks<Buffer>,
): void {
  if (request.complete) readWhole(request, maxBytes, held, callbacks);
  else readIncrementally(request, maxBytes, held, callbacks);
}

/**
 * Reads a body that has already arrived, without listening for events. Almost all bodies have. The sender may have disconnected since.
 * Requests with an `unread` body were already rejected by `findHeadRejection`.
 */
function readWhole(
  request: Incoming,
  maxBytes: number,
  held: HeldBody,
  { done, failed }: ReadCallbacks<Buffer>,
): void {
  const body: Buffer = request.read() ?? NO_BYTES;
  if (request instanceof PlainRequest && request.bodyState !== "whole") failed(incompleteBodyError());
  else if (body.length > maxBytes) failed(createApiError(payloadTooLarge(maxBytes)));
  else if (held.grow(body.length, body.length)) done(body);
  else failed(createBudgetError());
}

/** Reads a body while it arrives. Uses events, which cost a third of an async iterator. */
function readIncrementally(
  request: IncomingMessage,
  maxBytes: number,
  held: HeldBody,
  { done, failed }: ReadCallbacks<Buffer>,
): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let isOver = false;
  const stop = (error: ApiError): void => {
    request.off("data", onData);
    request.pause();
    isOver = true;
    chunks.length = 0;
    held.endReading();
    held.release();
    failed(error);
  };
  const rejectSlow = (): void => stop(createBudgetError());
  const onData = (chunk: Buffer): void => {
    bytes += chunk.length;
    if (bytes > maxBytes) stop(createApiError(payloadTooLarge(maxBytes)));
    else if (!held.grow(bytes, chunk.length, rejectSlow)) stop(createBudgetError());
    else chunks.push(chunk);
  };
  const onAbort = (): void => {
    if (!isOver) stop(incompleteBodyError());
  };
  // The sender disconnected while the channel was looked up, so no event will follow.
  if (request.destroyed) {
    onAbort();
    return;
  }
  // `on` is enough, because `end` and `close` fire at most once. Without a listener for `error`, a failed request still emits `close`.
  request.on("data", onData);
  request.on("end", () => {
    isOver = true;
    held.endReading();
    done(concatAndFree(chunks, bytes));
  });
  request.on("close", onAbort);
}

const incompleteBodyError = (): ApiError =>
  invalidParameters([{ path: "body", message: "ended before it was complete" }]);

const unsupported = (message: string): ErrorResponse => ({
  code: "unsupported_media_type",
  message,
  headers: {},
});

/**
 * Returns all header values. If a name repeats, they are read from the raw list, because Node joins or drops repeated headers. On the fast
 * path, no name repeats.
 */
export function readHeaderValues(incoming: Incoming): Values {
  if (incoming instanceof PlainRequest) return incoming.headers;
  const { headers, rawHeaders } = incoming;
  const names = Object.keys(headers);
  if (names.length * 2 !== rawHeaders.length) return collectRawHeaders(rawHeaders);
  const { collected } = new ValueCollector();
  for (const name of names) {
    const value = headers[name];
    // Node represents some headers as a list even if they occur once.
    if (typeof value !== "string") return collectRawHeaders(rawHeaders);
    collected[name] = value;
  }
  return collected;
}

function collectRawHeaders(rawHeaders: readonly string[]): Values {
  const values = new ValueCollector();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    values.add((rawHeaders[i] ?? "").toLowerCase(), rawHeaders[i + 1] ?? "");
  }
  return values.collected;
}
