import type { Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib";
import { ApiError, errorOf, invalidParameters, type ErrorResponse } from "../../http/problem.ts";
import { freeBuffer } from "../../lib/free-buffer.ts";
import { type HeldBody, LARGE_BODY_BYTES } from "../body-budget.ts";

/** What it decodes comes in pieces of `chunkSize` bytes. */
type CreateDecoder = (options: { readonly chunkSize: number }) => Transform;

/** RFC 9110 section 8.4.1, and zstd (RFC 8878). */
const DECODERS: ReadonlyMap<string, CreateDecoder> = new Map<string, CreateDecoder>([
  ["gzip", createGunzip],
  ["x-gzip", createGunzip],
  ["deflate", createInflate],
  ["br", createBrotliDecompress],
  ["zstd", createZstdDecompress],
]);

/** DEFLATE makes of a byte no more than so many (RFC 1951: 258 bytes by 2 bits). */
const MOST_DEFLATED = 1_032;
const LEAST_PIECE_BYTES = 16 * 1024;
/** Where nothing says how much it becomes. */
const USUALLY_PACKED = 16;
const MOST_GUESSED_BYTES = 256 * 1024;

export const findDecoder = (encoding: string): CreateDecoder | undefined => DECODERS.get(encoding);

/**
 * In how large pieces a body is decoded: each takes this thread a turn. One of gzip ends with its size (RFC 1952 section 2.3.1), and comes
 * in one piece where that is true; with a byte to spare, as a decoder that has filled its piece makes another.
 */
function pieceOf(body: Buffer, encoding: string, maxBytes: number): number {
  const isGzip = encoding.endsWith("gzip") && body.length >= 4;
  const expected = isGzip
    ? Math.min(body.readUInt32LE(body.length - 4) + 1, body.length * MOST_DEFLATED)
    : Math.min(body.length * USUALLY_PACKED, MOST_GUESSED_BYTES);
  return Math.max(LEAST_PIECE_BYTES, Math.min(expected, maxBytes + 1));
}

interface Decoding {
  readonly encoding: string;
  readonly maxBytes: number;
  readonly createDecoder: CreateDecoder;
  readonly held: HeldBody;
}

/**
 * Each piece is charged before there is memory for it, or as it comes: a few bytes may become many. A large body is decoded once its
 * organization has room among those that it has at work; one that says too late how large it is waits half decoded.
 *
 * @throws ApiError
 */
export async function decodeBody(body: Buffer, decoding: Decoding): Promise<Buffer> {
  const { encoding, maxBytes, held } = decoding;
  const chunkSize = pieceOf(body, encoding, maxBytes);
  // A small one waits too where its organization's others have become too much.
  const waits = chunkSize > LARGE_BODY_BYTES || !held.mayDecode();
  if (waits && !(await held.waitToDecode(chunkSize))) throw noRoom();
  if (!held.grow(chunkSize, chunkSize)) throw noRoom();
  return decodePieces(body, decoding, chunkSize, Math.max(chunkSize, LARGE_BODY_BYTES));
}

function decodePieces(
  body: Buffer,
  { maxBytes, createDecoder, held }: Decoding,
  chunkSize: number,
  hasRoomFor: number,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const decoder = createDecoder({ chunkSize });
    const chunks: Buffer[] = [];
    let bytes = 0;
    let charged = chunkSize;
    let mayBecome = hasRoomFor;
    const stop = (error: ApiError): void => {
      decoder.destroy();
      reject(error);
    };
    const waitToGoOn = async (): Promise<void> => {
      mayBecome = maxBytes;
      decoder.pause();
      if (await held.waitToDecode(maxBytes)) decoder.resume();
      else stop(noRoom());
    };
    decoder.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      held.decode(chunk.length);
      if (bytes > maxBytes) stop(errorOf(tooLarge(maxBytes)));
      else if (bytes > charged && !held.grow(bytes, bytes - charged)) stop(noRoom());
      else {
        charged = Math.max(charged, bytes);
        chunks.push(chunk);
        if (bytes > mayBecome) void waitToGoOn();
      }
    });
    decoder.on("end", () => {
      held.endDecoding(bytes);
      resolve(joined(chunks, bytes));
    });
    decoder.on("error", () => {
      stop(invalidParameters([{ path: "body", message: "is not what its Content-Encoding says" }]));
    });
    decoder.end(body);
  });
}

/** The pieces are gone then: of bodies of megabytes they are as many bytes again for the garbage collector. */
export function joined(chunks: readonly Buffer[], bytes: number): Buffer {
  const [first] = chunks;
  if (chunks.length === 1 && first !== undefined) return first;
  const whole = Buffer.concat(chunks, bytes);
  for (const chunk of chunks) freeBuffer(chunk);
  return whole;
}

/** The rest of the body is not read, so nothing can follow it on this connection. */
export const tooLarge = (maxBytes: number): ErrorResponse => ({
  code: "payload_too_large",
  message: `The body is larger than ${maxBytes} bytes.`,
  headers: { connection: "close" },
});

export const noRoom = (): ApiError =>
  new ApiError("unavailable", "Inlet cannot answer this just now; try again.", {
    headers: { "retry-after": "1", connection: "close" },
    cause: new Error("the bodies of the organization hold too much"),
  });
