import type { Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib";
import { ApiError, createApiError, type ErrorResponse, invalidParameters } from "../../http/errors.ts";
import { freeBuffer } from "../../lib/free-buffer.ts";
import { type HeldBody, LARGE_BODY_BYTES } from "./body-budget.ts";

/** `chunkSize` is the size of each decoded chunk, in bytes. */
type CreateDecoder = (options: { readonly chunkSize: number }) => Transform;

/** Decompressors by `Content-Encoding`: those of RFC 9110, section 8.4.1, and zstd (RFC 8878). */
const DECODERS: ReadonlyMap<string, CreateDecoder> = new Map<string, CreateDecoder>([
  ["gzip", createGunzip],
  ["x-gzip", createGunzip],
  ["deflate", createInflate],
  ["br", createBrotliDecompress],
  ["zstd", createZstdDecompress],
]);

/** Highest compression ratio of DEFLATE: 258 bytes from 2 bits (RFC 1951). */
const MAX_DEFLATE_RATIO = 1_032;
const MIN_CHUNK_BYTES = 16 * 1024;
/** Compression ratio to assume for formats that do not state the decompressed size. */
const TYPICAL_RATIO = 16;
const MAX_GUESSED_BYTES = 256 * 1024;

export const findDecoder = (encoding: string): CreateDecoder | undefined => DECODERS.get(encoding);

/**
 * Returns the chunk size for decoding. Larger chunks are faster, because each chunk costs one turn of the event loop. A gzip body ends with
 * its decoded size (RFC 1952 section 2.3.1), so it usually decodes in one chunk. One extra byte is added, because a decoder whose chunk is
 * exactly full allocates another one.
 */
function computeChunkSize(body: Buffer, encoding: string, maxBytes: number): number {
  const isGzip = encoding.endsWith("gzip") && body.length >= 4;
  const expected = isGzip
    ? Math.min(body.readUInt32LE(body.length - 4) + 1, body.length * MAX_DEFLATE_RATIO)
    : Math.min(body.length * TYPICAL_RATIO, MAX_GUESSED_BYTES);
  return Math.max(MIN_CHUNK_BYTES, Math.min(expected, maxBytes + 1));
}

interface Decoding {
  readonly encoding: string;
  readonly maxBytes: number;
  readonly createDecoder: CreateDecoder;
  readonly held: HeldBody;
}

/**
 * Decodes a compressed body. Each chunk is charged to the memory budget, because a small body can decode to a large one. A large body waits
 * until its organization has room for it. A body that turns out to be large while it is decoded pauses until there is room.
 *
 * @throws ApiError
 */
export async function decodeBody(body: Buffer, decoding: Decoding): Promise<Buffer> {
  const { encoding, maxBytes, held } = decoding;
  const chunkSize = computeChunkSize(body, encoding, maxBytes);
  // A small body must wait too if its organization has exceeded its decompression rate.
  const waits = chunkSize > LARGE_BODY_BYTES || !held.mayDecode();
  if (waits && !(await held.waitToDecode(chunkSize))) throw createBudgetError();
  if (!held.grow(chunkSize, chunkSize)) throw createBudgetError();
  return decodeChunks(body, decoding, chunkSize, Math.max(chunkSize, LARGE_BODY_BYTES));
}

function decodeChunks(
  body: Buffer,
  { maxBytes, createDecoder, held }: Decoding,
  chunkSize: number,
  reservedBytes: number,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const decoder = createDecoder({ chunkSize });
    const chunks: Buffer[] = [];
    let bytes = 0;
    let charged = chunkSize;
    let allowedBytes = reservedBytes;
    const stop = (error: ApiError): void => {
      decoder.destroy();
      reject(error);
    };
    const waitForRoom = async (): Promise<void> => {
      allowedBytes = maxBytes;
      decoder.pause();
      if (await held.waitToDecode(maxBytes)) decoder.resume();
      else stop(createBudgetError());
    };
    decoder.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      held.noteDecoded(chunk.length);
      if (bytes > maxBytes) stop(createApiError(payloadTooLarge(maxBytes)));
      else if (bytes > charged && !held.grow(bytes, bytes - charged)) stop(createBudgetError());
      else {
        charged = Math.max(charged, bytes);
        chunks.push(chunk);
        if (bytes > allowedBytes) void waitForRoom();
      }
    });
    decoder.on("end", () => {
      held.endDecoding(bytes);
      resolve(concatAndFree(chunks, bytes));
    });
    decoder.on("error", () => {
      stop(invalidParameters([{ path: "body", message: "does not match its Content-Encoding" }]));
    });
    decoder.end(body);
  });
}

/** Joins the chunks and frees their memory immediately, because garbage collection frees large buffers too late. */
export function concatAndFree(chunks: readonly Buffer[], bytes: number): Buffer {
  const [first] = chunks;
  if (chunks.length === 1 && first !== undefined) return first;
  const whole = Buffer.concat(chunks, bytes);
  for (const chunk of chunks) freeBuffer(chunk);
  return whole;
}

/** Creates the response for a body that is too large. It closes the connection, because the rest of the body is not read. */
export const payloadTooLarge = (maxBytes: number): ErrorResponse => ({
  code: "payload_too_large",
  message: `The body is larger than ${maxBytes} bytes.`,
  headers: { connection: "close" },
});

export const createBudgetError = (): ApiError =>
  new ApiError("unavailable", "Inlet cannot process this request at the moment. Try again.", {
    headers: { "retry-after": "1", connection: "close" },
    cause: new Error("the organization has used up its budget for request bodies"),
  });
