import type { IncomingMessage } from "node:http";
import type { ChannelHandle } from "../../event/ingest.ts";
import type { RawRequest } from "../../event/received.ts";
import { ValueCollector, type Values } from "../../event/values.ts";
import type { Incoming } from "../../http/context.ts";
import { PlainRequest } from "../../http/fast-path/plain-request.ts";
import { type ApiError, errorOf, invalidParameters, type ErrorResponse } from "../../http/problem.ts";
import { freeBuffer } from "../../lib/free-buffer.ts";
import type { HeldBody } from "../body-budget.ts";
import { decodeBody, findDecoder, joined, noRoom, tooLarge } from "./decode-body.ts";

const NO_BYTES = Buffer.alloc(0);

type Arrival = Required<Pick<RawRequest, "arrivedAtMs" | "clientAddress" | "requestId">>;

/** One of them is called, once. Promises would cost a delivery as much as its JSON does. */
export interface Told<T> {
  readonly done: (value: T) => void;
  readonly failed: (error: unknown) => void;
}

/** What a request is refused with by its head alone: 413, 415. A value, that floods are refused for little. */
export function findRefusal({ headers }: Incoming, channel: ChannelHandle): ErrorResponse | undefined {
  if (!channel.acceptsContentType(headers["content-type"])) {
    return unsupported("This Content-Type is not accepted.");
  }
  const { maxBodyBytes } = channel.limits;
  return Number(headers["content-length"] ?? 0) > maxBodyBytes ? tooLarge(maxBodyBytes) : undefined;
}

/**
 * Reads one request to a push channel, which `findRefusal` has let pass, within the channel's limits, before anything of it is
 * believed. A web `Request`'s body would cost about 50 µs more.
 *
 * Failures that are told: 413, 415, 400 where the body is not what its `Content-Encoding` says or ends early, 503 where the
 * budget is used up.
 */
export function readDelivery(
  incoming: Incoming,
  channel: ChannelHandle,
  { arrivedAtMs, clientAddress, requestId }: Arrival,
  held: HeldBody,
  { done, failed }: Told<RawRequest>,
): void {
  const { method = "POST", url = "/" } = incoming;
  readBody(incoming, channel.limits.maxBodyBytes, held, {
    done: (body) =>
      done({
        method,
        target: url,
        headers: valuesOf(incoming),
        body,
        arrivedAtMs,
        clientAddress,
        requestId,
      }),
    failed,
  });
}

/**
 * Reads a request's body, at most `maxBytes` of it before and after its `Content-Encoding` is undone.
 *
 * @param held what is read stays charged to it
 */
function readBody(request: Incoming, maxBytes: number, held: HeldBody, told: Told<Buffer>): void {
  const encoding = request.headers["content-encoding"]?.trim().toLowerCase() ?? "";
  if (encoding === "" || encoding === "identity") {
    readBytes(request, maxBytes, held, told);
    return;
  }
  const createDecoder = findDecoder(encoding);
  if (createDecoder === undefined) {
    told.failed(errorOf(unsupported("This Content-Encoding is not accepted.")));
    return;
  }
  readBytes(request, maxBytes, held, {
    done(packed) {
      const decoding = decodeBody(packed, { encoding, maxBytes, createDecoder, held }).then((body) => {
        freeBuffer(packed);
        told.done(body);
      });
      decoding.catch(told.failed);
    },
    failed: told.failed,
  });
}

function readBytes(request: Incoming, maxBytes: number, held: HeldBody, told: Told<Buffer>): void {
  if (request.complete) readWhole(request, maxBytes, held, told);
  else readAsItComes(request, maxBytes, held, told);
}

/**
 * It has come already, as nearly all do: nothing is to be listened for. Its sender may have gone. One that is unread gets no further than
 * `findRefusal`.
 */
function readWhole(
  request: Incoming,
  maxBytes: number,
  held: HeldBody,
  { done, failed }: Told<Buffer>,
): void {
  const body: Buffer = request.read() ?? NO_BYTES;
  if (request instanceof PlainRequest && request.bodyState !== "whole") failed(cutOff());
  else if (body.length > maxBytes) failed(errorOf(tooLarge(maxBytes)));
  else if (held.grow(body.length, body.length)) done(body);
  else failed(noRoom());
}

/** Events instead of an async iterator: a third of its cost. */
function readAsItComes(
  request: IncomingMessage,
  maxBytes: number,
  held: HeldBody,
  { done, failed }: Told<Buffer>,
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
  const giveWay = (): void => stop(noRoom());
  const onData = (chunk: Buffer): void => {
    bytes += chunk.length;
    if (bytes > maxBytes) stop(errorOf(tooLarge(maxBytes)));
    else if (!held.grow(bytes, chunk.length, giveWay)) stop(noRoom());
    else chunks.push(chunk);
  };
  const onAbort = (): void => {
    if (!isOver) stop(cutOff());
  };
  // Its sender has gone while its channel was looked up: nothing comes any more.
  if (request.destroyed) {
    onAbort();
    return;
  }
  // Each comes once at most: `once` would only wrap them. An error that nobody listens for comes as `close` alone.
  request.on("data", onData);
  request.on("end", () => {
    isOver = true;
    held.endReading();
    done(joined(chunks, bytes));
  });
  request.on("close", onAbort);
}

const cutOff = (): ApiError => invalidParameters([{ path: "body", message: "ended before it was complete" }]);

const unsupported = (message: string): ErrorResponse => ({
  code: "unsupported_media_type",
  message,
  headers: {},
});

/** Where a name repeats Node joins or drops values: then all are read again. On the fast path no name repeats. */
export function valuesOf(incoming: Incoming): Values {
  if (incoming instanceof PlainRequest) return incoming.headers;
  const { headers, rawHeaders } = incoming;
  const names = Object.keys(headers);
  if (names.length * 2 !== rawHeaders.length) return valuesOfRaw(rawHeaders);
  const { collected } = new ValueCollector();
  for (const name of names) {
    const value = headers[name];
    // A list, of one.
    if (typeof value !== "string") return valuesOfRaw(rawHeaders);
    collected[name] = value;
  }
  return collected;
}

function valuesOfRaw(rawHeaders: readonly string[]): Values {
  const values = new ValueCollector();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    values.add((rawHeaders[i] ?? "").toLowerCase(), rawHeaders[i + 1] ?? "");
  }
  return values.collected;
}
