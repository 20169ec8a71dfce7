import { Duplex } from "node:stream";
import type { ReadableWritablePair } from "node:stream/web";
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
} from "node:zlib";
import { type Body, fromWebStream, toWebStream } from "./body.ts";
import { OutboundError } from "./outbound.ts";

const DECODERS: Readonly<Record<string, () => Duplex>> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  // Limit the decompression window to 8 MiB, the maximum that senders may use (RFC 9659, section 3). The default is 128 MiB.
  zstd: () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: 23 } }),
};

/** Must only contain encodings that `decodeBody` supports. */
export const ACCEPT_ENCODING = "gzip, br, zstd, deflate";

/** Maximum number of content codings of a body. Only attacks use more than two. */
const MAX_CODINGS = 2;

/**
 * Decodes a body as `Content-Encoding` specifies (RFC 9110, section 8.4), or returns it unchanged if a coding is unknown.
 *
 * @throws OutboundError `protocol` if there are more than `MAX_CODINGS`
 */
export function decodeBody(body: Body, encoding: string): Body {
  const names = encoding.toLowerCase().split(",");
  const codings = names.map((name) => name.trim()).filter((name) => name !== "" && name !== "identity");
  if (codings.length > MAX_CODINGS) throw new OutboundError("protocol", "too many content encodings");
  const decoders = codings.map((name) => DECODERS[name]);
  if (decoders.includes(undefined)) return body;
  return decoders.length === 0
    ? body
    : decodeUnlessEmpty(body, (encoded) =>
        fromWebStream(
          decoders.reduceRight(
            (decoded, create) => (create ? decoded.pipeThrough(toTransform(create())) : decoded),
            toWebStream(encoded),
          ),
        ),
      );
}

const toTransform = (decoder: Duplex): ReadableWritablePair<Uint8Array, Uint8Array> =>
  Duplex.toWeb(decoder) as ReadableWritablePair<Uint8Array, Uint8Array>;

/** Decodes a body, but leaves an empty one unchanged, because decoders would report it as truncated. */
function decodeUnlessEmpty(body: Body, decode: (body: Body) => Body): Body {
  let decoded: Body | undefined;
  return {
    async read() {
      if (decoded) return decoded.read();
      const first = await body.read();
      if (first === undefined) return undefined;
      let unread: Uint8Array | undefined = first;
      decoded = decode({
        async read() {
          const chunk = unread ?? (await body.read());
          unread = undefined;
          return chunk;
        },
        cancel: () => body.cancel(),
      });
      return decoded.read();
    },
    cancel: () => (decoded ?? body).cancel(),
  };
}

/**
 * Limits the size of a body. If the body exceeds `maxBytes`, cancels its source and throws an `OutboundError` (`tooLarge`).
 *
 * @param explain converts all other errors that reading the body throws
 */
export function boundBody(body: Body, maxBytes: number, explain: (thrown: unknown) => unknown): Body {
  let bytes = 0;
  return {
    async read() {
      const chunk = await body.read().catch((thrown: unknown) => {
        throw explain(thrown);
      });
      bytes += chunk?.byteLength ?? 0;
      if (bytes <= maxBytes) return chunk;
      await body.cancel().catch(() => {});
      throw new OutboundError("tooLarge", `the response exceeds ${maxBytes} bytes`);
    },
    cancel: () => body.cancel(),
  };
}
