import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate, zstdDecompress } from "node:zlib";
import { ApiError, createApiError, type ErrorResponse, invalidParameters } from "../../http/errors.ts";
import type { HeldBody } from "./body-budget.ts";
import { LARGE_BODY_BYTES } from "./decode-turn.ts";

/** `maxOutputLength` and `chunkSize` are in bytes. */
type Decode = (
  body: Buffer,
  options: { readonly maxOutputLength: number; readonly chunkSize: number },
) => Promise<Buffer>;

/** Decompressors by `Content-Encoding`: those of RFC 9110, section 8.4.1, and zstd (RFC 8878). */
const DECODERS: ReadonlyMap<string, Decode> = new Map<string, Decode>([
  ["gzip", promisify(gunzip)],
  ["x-gzip", promisify(gunzip)],
  ["deflate", promisify(inflate)],
  ["br", promisify(brotliDecompress)],
  ["zstd", promisify(zstdDecompress)],
]);

/** Highest compression ratio of DEFLATE: 258 bytes from 2 bits (RFC 1951). */
const MAX_DEFLATE_RATIO = 1_032;
const MIN_CHUNK_BYTES = 16 * 1024;
/** Compression ratio to assume for formats that do not state the decompressed size. */
const TYPICAL_RATIO = 16;

export const findDecoder = (encoding: string): Decode | undefined => DECODERS.get(encoding);

/**
 * Returns the size for which the first attempt to decode reserves memory. A gzip body ends with its decoded size (RFC 1952 section 2.3.1).
 * One extra byte is added, because a decoder whose output is exactly full allocates another chunk.
 */
function guessDecodedBytes(body: Buffer, encoding: string, maxBytes: number): number {
  const isGzip = encoding.endsWith("gzip") && body.length >= 4;
  const expected = isGzip
    ? Math.min(body.readUInt32LE(body.length - 4) + 1, body.length * MAX_DEFLATE_RATIO)
    : Math.min(body.length * TYPICAL_RATIO, LARGE_BODY_BYTES);
  return Math.max(MIN_CHUNK_BYTES, Math.min(expected, maxBytes + 1));
}

interface Decoding {
  readonly encoding: string;
  readonly maxBytes: number;
  readonly decode: Decode;
  readonly held: HeldBody;
}

/**
 * Decodes a compressed body. The decoded bytes are charged to the memory budget, because a small body can decode to a large one. A large
 * body waits until its organization has room for it. A body that turns out to be larger than expected waits too, and is then decoded again.
 *
 * @throws ApiError
 */
export async function decodeBody(
  body: Buffer,
  { encoding, maxBytes, decode, held }: Decoding,
): Promise<Buffer> {
  const { decodeTurn } = held;
  const expected = guessDecodedBytes(body, encoding, maxBytes);

  /** Returns `undefined` if the decoded body is larger than `limit`. */
  async function decodeUpTo(limit: number): Promise<Buffer | undefined> {
    try {
      // A single chunk is faster than several, and its memory can be freed explicitly.
      const decoded = await decode(body, { maxOutputLength: limit, chunkSize: limit });
      decodeTurn.note(decoded.length);
      return decoded;
    } catch (error) {
      decodeTurn.note(limit);
      if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") return undefined;
      throw invalidParameters([{ path: "body", message: "does not match its Content-Encoding" }]);
    }
  }

  // A small body must wait too if its organization has exceeded its decompression rate.
  const mustWait = expected > LARGE_BODY_BYTES || !decodeTurn.mayStart();
  if (mustWait && !(await decodeTurn.wait(expected))) throw createBudgetError();
  if (!(await held.grow(expected, expected))) throw createBudgetError();
  let decoded = await decodeUpTo(expected);
  if (decoded === undefined && expected < maxBytes) {
    if (!(await decodeTurn.wait(maxBytes))) throw createBudgetError();
    decoded = await decodeUpTo(maxBytes + 1);
    const extra = (decoded?.length ?? 0) - expected;
    if (extra > 0 && !(await held.grow(expected + extra, extra))) throw createBudgetError();
  }
  if (decoded === undefined || decoded.length > maxBytes) throw createApiError(payloadTooLarge(maxBytes));
  decodeTurn.endDecoding(decoded.length);
  return decoded;
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
