import { Duplex } from "node:stream";
import type { ReadableWritablePair } from "node:stream/web";
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib";
import { OutboundError } from "./outbound.ts";

type Body = ReadableStream<Uint8Array>;

const DECODERS: Readonly<Record<string, () => Duplex>> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
};

/** What `decodeBody` can undo, as an `Accept-Encoding`. */
export const ACCEPT_ENCODING = "gzip, br, zstd, deflate";

/** More than one after the other serves nobody but whoever wants to see us work. */
const MAX_CODINGS = 2;

/**
 * The body with its `Content-Encoding` undone (RFC 9110, section 8.4), no faster than it is read. A body in a coding that is not
 * known stays as it is.
 *
 * @throws OutboundError `protocol` for more than two codings
 */
export function decodeBody(body: Body, encoding: string): Body {
  const names = encoding.toLowerCase().split(",");
  const codings = names.map((name) => name.trim()).filter((name) => name !== "" && name !== "identity");
  if (codings.length > MAX_CODINGS) throw new OutboundError("protocol", "too many content encodings");
  const decoders = codings.map((name) => DECODERS[name]);
  if (decoders.includes(undefined)) return body;
  return decoders.reduceRight<Body>(
    (decoded, create) => (create ? decoded.pipeThrough(asTransform(create())) : decoded),
    body,
  );
}

const asTransform = (decoder: Duplex): ReadableWritablePair<Uint8Array, Uint8Array> =>
  Duplex.toWeb(decoder) as ReadableWritablePair<Uint8Array, Uint8Array>;

/**
 * The body up to `maxBytes`, then `OutboundError` `tooLarge`, its source cancelled. Other failures are handed to `explain`.
 */
export function boundBody(body: Body, maxBytes: number, explain: (thrown: unknown) => unknown): Body {
  const reader = body.getReader();
  let bytes = 0;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read().catch((thrown: unknown) => {
          throw explain(thrown);
        });
        if (done) {
          controller.close();
          return;
        }
        bytes += value.byteLength;
        if (bytes > maxBytes) {
          const error = new OutboundError("tooLarge", `the answer is larger than ${maxBytes} bytes`);
          await reader.cancel(error).catch(() => {});
          throw error;
        }
        controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}
