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

/** Exactly one of them is called, once. Callbacks, because promises would cost as much per delivery as parsing its JSON. */
export interface ReadCallbacks<T> {
  readonly done: (value: T) => void;
  readonly failed: (error: unknown) => void;
}

/** Returns the rejection that follows from the request head alone: 413 or 415. Returned rather than thrown, so that floods stay cheap. */
export function findHeadRejection({ headers }: Incoming, channel: ChannelHandle): ErrorResponse | undefined {
  if (!channel.acceptsContentType(headers["content-type"])) {
    return unsupported("This Content-Type is not accepted.");
  }
  const { maxBodyBytes } = channel.limits;
  return Number(headers["content-length"] ?? 0) > maxBodyBytes ? payloadTooLarge(maxBodyBytes) : undefined;
}

/**
 * Reads one request to a push channel within the channel's limits. The caller has already checked it with `findHeadRejection`. Reading
 * through a web `Request` would cost about 50 µs more.
 *
 * `failed` receives 413, 415, 400 if the body is incomplete or does not match its `Content-Encoding`, or 503 if the budget is used up.
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
 * @param held is charged for the body, also after this function
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
 * Reads a body that has already arrived, as almost all do, without listening for events. The sender may have disconnected.
 * `findHeadRejection` has already rejected requests whose body is `unread`.
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

/** Reads a body as it arrives. Events cost a third of an async iterator. */
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
  // The sender disconnected while the channel was looked up, so no more events follow.
  if (request.destroyed) {
    onAbort();
    return;
  }
  // Each event fires at most once, so `once` would add nothing. An `error` without a listener is followed by `close`.
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
 * Returns all header values. Node joins or drops repeated headers, so they are read from the raw list if a name repeats. On the fast path
 * no
 * name repeats.
 */
export function readHeaderValues(incoming: Incoming): Values {
  if (incoming instanceof PlainRequest) return incoming.headers;
  const { headers, rawHeaders } = incoming;
  const names = Object.keys(headers);
  if (names.length * 2 !== rawHeaders.length) return collectRawHeaders(rawHeaders);
  const { collected } = new ValueCollector();
  for (const name of names) {
    const value = headers[name];
    // A header that Node returns as a list with one value.
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
