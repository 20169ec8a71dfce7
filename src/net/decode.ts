import { type Duplex, pipeline, Readable } from "node:stream";
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
} from "node:zlib";
import type { Body } from "./body.ts";
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
  const decoders = codings.flatMap((name) => DECODERS[name] ?? []).reverse();
  if (codings.length === 0 || decoders.length < codings.length) return body;
  const chunks = decode(body, decoders);
  let isCanceled = false;
  return {
    async read() {
      try {
        return (await chunks.next()).value;
      } catch (error) {
        // A canceled body ends early, which its decoder reports as a truncated body.
        if (isCanceled) return undefined;
        throw error;
      }
    },
    async cancel() {
      isCanceled = true;
      await body.cancel();
      chunks.return(undefined).catch(() => {});
    },
  };
}

async function* decode(
  body: Body,
  decoders: readonly (() => Duplex)[],
): AsyncGenerator<Uint8Array, undefined> {
  const first = await body.read();
  // A decoder would report an empty body as truncated.
  if (first === undefined) return undefined;
  async function* chunks() {
    for (let chunk: Uint8Array | undefined = first; chunk !== undefined; chunk = await body.read())
      yield chunk;
  }
  yield* decoders.reduce<Readable>(
    (encoded, create) => pipeline(encoded, create(), () => {}),
    Readable.from(chunks()),
  );
  return undefined;
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
