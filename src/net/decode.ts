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
  // 8 MiB, as much as a sender may ask for (RFC 9659, section 3); by itself the library lets it take 128.
  zstd: () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: 23 } }),
};

/** The encodings that `decodeBody` can undo, as an `Accept-Encoding`. */
export const ACCEPT_ENCODING = "gzip, br, zstd, deflate";

/** More than one after the other serves only an attacker. */
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
  return decoders.length === 0
    ? body
    : unlessEmpty(body, (encoded) =>
        fromWebStream(
          decoders.reduceRight(
            (decoded, create) => (create ? decoded.pipeThrough(asTransform(create())) : decoded),
            toWebStream(encoded),
          ),
        ),
      );
}

const asTransform = (decoder: Duplex): ReadableWritablePair<Uint8Array, Uint8Array> =>
  Duplex.toWeb(decoder) as ReadableWritablePair<Uint8Array, Uint8Array>;

/** Nothing at all is nothing in any coding, though decoders take it for something that was cut short. */
function unlessEmpty(body: Body, decode: (body: Body) => Body): Body {
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
 * The body up to `maxBytes`, then `OutboundError` `tooLarge`, its source cancelled. Other failures are handed to `explain`.
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
      throw new OutboundError("tooLarge", `the answer is larger than ${maxBytes} bytes`);
    },
    cancel: () => body.cancel(),
  };
}
