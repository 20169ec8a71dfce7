import { createHash } from "node:crypto";
import { z } from "zod";
import { checkFields } from "../../lib/check-fields.ts";
import { areBytesEqual } from "../../lib/constant-time.ts";
import { ok } from "../../lib/result.ts";
import { compileHmac, type Hmac } from "../../lib/secrets/hmac.ts";
import { checkMessage, coversPlace, findQueryGap } from "../message/check-message.ts";
import { HASHES, signedMessageFields } from "../message/config.ts";
import { compileMessage } from "../message/message.ts";
import { consumedBy } from "../message/request-view.ts";
import { deriveKey, findWrongKey, secretKeySchema } from "../secret-key.ts";
import { defineScheme, memoizePerSecret, reject } from "../verifier.ts";

const shape = z.strictObject({
  scheme: z.literal("hmac").describe("An HMAC (RFC 2104) of the body, or of a text that contains the body."),
  algorithm: z.enum(HASHES).default("sha256").describe("Hash function. md5 is weak and needs `allowWeak`."),
  construction: z
    .enum(["hmac", "plain"])
    .default("hmac")
    .describe(
      "`plain` uses a hash of a template that contains {{secret}} instead of an HMAC. It is weak and needs `allowWeak`.",
    ),
  key: secretKeySchema,
  ...signedMessageFields,
});

export type HmacConfig = z.output<typeof shape>;

const configSchema = shape
  .check(
    checkMessage,
    checkFields(({ algorithm, construction, allowWeak, template = "" }, note) => {
      if (construction === "plain" && !/\{\{\s*secret\b/.test(template)) {
        note("construction", "plain needs a `template` that contains {{secret}}");
      }
      if (allowWeak) return;
      if (algorithm === "md5") note("algorithm", "md5 is weak and needs `allowWeak: true`");
      if (construction === "plain") note("construction", "plain is weak and needs `allowWeak: true`");
    }),
  )
  .describe("Verifies deliveries that are signed with a shared secret.");

/**
 * Verifies an HMAC over the raw body, or over a text that contains the body, with any of the channel's secrets. All comparisons
 * take constant time, so that timing reveals nothing about nearly correct signatures.
 */
export const hmac = defineScheme({
  scheme: "hmac",
  configSchema,
  needsSecret: true,
  findWrongSecret: ({ key }, secret) => findWrongKey(key, secret),
  findQueryGap,
  covers: coversPlace,
  create(options) {
    const read = compileMessage(options);
    const getDigests = memoizePerSecret(compileDigest(options));
    const mismatch = reject("mismatch", `the signature in ${options.in} ${options.name} does not match`);
    return {
      ...consumedBy(options),
      verify(request, context) {
        const message = read(request, context);
        if (!message.ok) return message;
        const { signatures, bytes, proved } = message.value;
        let matches = false;
        const digests = getDigests(context.secrets);
        for (const [index, secret] of context.secrets.entries()) {
          const expected = digests[index]?.(bytes(secret));
          if (expected === undefined) continue;
          for (const signature of signatures) {
            if (areBytesEqual(expected, signature)) matches = true;
          }
        }
        if (!matches) return mismatch;
        if (context.signsForAnyone && couldHandshakeSign(bytes(""))) {
          return reject(
            "mismatch",
            "the signature could come from a handshake of the channel, because that handshake signs texts for any caller",
          );
        }
        return ok(proved());
      },
    };
  },
});

/** Matches texts that a handshake could have signed: all characters that a handshake's template can produce. */
const HANDSHAKE_SIGNABLE = /^[A-Za-z0-9_~+/=%-]*$/;
const MAX_HANDSHAKE_BYTES = 16_384;

function couldHandshakeSign(pieces: readonly (string | Buffer)[]): boolean {
  if (pieces.reduce((sum, { length }) => sum + length, 0) > MAX_HANDSHAKE_BYTES) return false;
  return pieces.every((piece) => HANDSHAKE_SIGNABLE.test(piece.toString()));
}

/**
 * Compiles a function that returns the HMAC function for a secret. It returns `undefined` if no key can be derived from the secret.
 */
export function compileDigest({
  algorithm,
  construction,
  key,
}: HmacConfig): (secret: string) => Hmac | undefined {
  const { encoding, stripPrefix, append, hash } = key;
  // Skip the key derivation for most senders, whose key is the text of the secret.
  const isPlainText =
    encoding === "utf8" && stripPrefix === undefined && append === undefined && hash === undefined;
  const keyOf = (secret: string) => (isPlainText ? secret : deriveKey(key, secret));
  if (construction === "plain") {
    const digest: Hmac = (pieces) => {
      const hashing = createHash(algorithm);
      for (const piece of pieces) hashing.update(piece);
      return hashing.digest();
    };
    return (secret) => (keyOf(secret) === undefined ? undefined : digest);
  }
  return (secret) => {
    const bytes = keyOf(secret);
    return bytes === undefined ? undefined : compileHmac(algorithm, bytes);
  };
}
