import type { Readable } from "node:stream";
import { type ApiError, createApiError, type ErrorResponse, invalidParameters } from "../../http/errors.ts";
import type { HookExchange } from "../../http/hook-exchange.ts";
import { freeBuffer } from "../../lib/free-buffer.ts";
import type { HeldBody } from "./body-budget.ts";
import { createBudgetError, decodeBody, findDecoder, payloadTooLarge } from "./decode-body.ts";

/**
 * Reads and decodes the body of a request. `maxBytes` limits both the encoded and the decoded size. Returns a promise only if it has to
 * wait.
 *
 * @param held the body's share of the memory budget. The body stays charged to it after this function returns.
 * @throws ApiError 413 or 415; 400 when the body is incomplete or does not match its `Content-Encoding`; 503 when the memory budget is used
 * up
 */
export function readBody(exchange: HookExchange, maxBytes: number, held: HeldBody): Buffer | Promise<Buffer> {
  const encoding = exchange.headers["content-encoding"]?.trim().toLowerCase() ?? "";
  if (NO_ENCODING.has(encoding)) return readBytes(exchange, maxBytes, held);
  const decode = findDecoder(encoding);
  if (decode === undefined) {
    const shown = JSON.stringify(encoding.slice(0, MAX_SHOWN_CHARS));
    throw createApiError(
      unsupportedMediaType(
        `The Content-Encoding ${shown} is not accepted: use gzip, deflate, br, zstd, or none.`,
      ),
    );
  }
  return readAndDecode(exchange, { encoding, maxBytes, decode, held });
}

/** Values that encode nothing. Some senders name the charset of the body here. */
const NO_ENCODING: ReadonlySet<string> = new Set(["", "identity", "none", "utf-8", "utf8"]);
const MAX_SHOWN_CHARS = 100;

async function readAndDecode(
  exchange: HookExchange,
  decoding: Parameters<typeof decodeBody>[1],
): Promise<Buffer> {
  const packed = await readBytes(exchange, decoding.maxBytes, decoding.held);
  const body = await decodeBody(packed, decoding);
  freeBuffer(packed);
  return body;
}

function readBytes(exchange: HookExchange, maxBytes: number, held: HeldBody): Buffer | Promise<Buffer> {
  const body = exchange.takeBody();
  if (!Buffer.isBuffer(body)) return readStream(body, maxBytes, held);
  if (body.length > maxBytes) throw createApiError(payloadTooLarge(maxBytes));
  const isHeld = held.grow(body.length, body.length);
  if (isHeld === true) return body;
  return requireHeld(isHeld).then(() => body);
}

async function requireHeld(isHeld: boolean | Promise<boolean>): Promise<void> {
  if (!(await isHeld)) throw createBudgetError();
}

/** Reads a body while it arrives. Event listeners take only a third of the CPU time of an async iterator. */
function readStream(stream: Readable, maxBytes: number, held: HeldBody): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    let isOver = false;
    /** Settles when the supervisor has granted memory. The stream is paused until then. */
    let growing: Promise<void> | undefined;
    const stop = (error: ApiError): void => {
      stream.off("data", onData);
      stream.pause();
      isOver = true;
      chunks.length = 0;
      held.endReading();
      held.release();
      reject(error);
    };
    const rejectSlow = (): void => stop(createBudgetError());
    const onData = (chunk: Buffer): void => {
      bytes += chunk.length;
      if (bytes > maxBytes) {
        stop(createApiError(payloadTooLarge(maxBytes)));
        return;
      }
      const isHeld = held.grow(bytes, chunk.length, rejectSlow);
      if (isHeld === false) stop(createBudgetError());
      else chunks.push(chunk);
      if (isHeld instanceof Promise) growing = pauseUntil(isHeld);
    };
    const pauseUntil = async (isHeld: Promise<boolean>): Promise<void> => {
      stream.pause();
      const isGranted = await isHeld;
      growing = undefined;
      if (isOver) return;
      if (isGranted) stream.resume();
      else stop(createBudgetError());
    };
    const finish = (): void => {
      if (isOver) return;
      isOver = true;
      held.endReading();
      resolve(concatAndFree(chunks, bytes));
    };
    const onClose = (): void => {
      if (!isOver && !stream.readableEnded) stop(incompleteBodyError());
    };
    // The sender disconnected earlier, so no further event will be emitted.
    if (stream.destroyed) {
      onClose();
      return;
    }
    // `on` is enough, because `end` and `close` are emitted at most once. A listener for `error` is not needed, because `close` follows.
    stream.on("data", onData);
    // A stream may end although it is paused.
    stream.on("end", () => (growing === undefined ? finish() : void growing.then(finish)));
    stream.on("close", onClose);
  });
}

/** Joins the chunks and frees their memory immediately, because garbage collection frees large buffers too late. */
function concatAndFree(chunks: readonly Buffer[], bytes: number): Buffer {
  const [first] = chunks;
  if (chunks.length === 1 && first !== undefined) return first;
  const whole = Buffer.concat(chunks, bytes);
  for (const chunk of chunks) freeBuffer(chunk);
  return whole;
}

const incompleteBodyError = (): ApiError =>
  invalidParameters([{ path: "body", message: "ended before it was complete" }]);

export const unsupportedMediaType = (message: string): ErrorResponse => ({
  code: "unsupported_media_type",
  message,
  headers: {},
});
