import { createHmac, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { queryValues } from "../event/values.ts";
import { err, ok } from "../lib/result.ts";
import { HASHES, signedMessageSettings } from "./message/settings.ts";
import { secretKeySchema } from "./secret-key.ts";
import { defineScheme } from "./verifier.ts";

export const hmacSettings = z
  .strictObject({
    scheme: z.literal("hmac").describe("A keyed hash (RFC 2104) of the body, or of a text that holds it."),
    algorithm: z.enum(HASHES).default("sha256").describe("The hash. md5 is weak, and needs `allowWeak`."),
    construction: z
      .enum(["hmac", "plain"])
      .default("hmac")
      .describe("plain: a bare hash of a template that holds {{secret}}; weak, and needs `allowWeak`."),
    key: secretKeySchema,
    ...signedMessageSettings,
  })
  .describe("Deliveries signed with a shared secret.");

type HmacSettings = z.output<typeof hmacSettings>;

/**
 * A keyed hash (RFC 2104) of the raw body under any of the channel's secrets. All secrets are tried and each comparison
 * takes constant time, so that neither the time nor the answer tells which one was close.
 */
export const hmac = defineScheme({
  scheme: "hmac",
  settings: hmacSettings,
  needsSecret: true,
  create(options) {
    const name = options.in === "header" ? options.name.toLowerCase() : options.name;
    const consumed = {
      consumedHeaders: options.in === "header" ? [name] : [],
      consumedQuery: options.in === "query" ? [name] : [],
    };
    const verified = ok(consumed);
    const refused = (message: string) => err({ message, ...consumed });
    return (request, { secrets }) => {
      if (secrets.length === 0) return refused("the channel has no secret that is valid now");
      const sent = (options.in === "header" ? request.headers : queryValues(request.target))[name];
      if (typeof sent !== "string")
        return refused(`the ${options.in} ${options.name} is missing or repeated`);
      const signature = decode(sent, options);
      if (signature === undefined) {
        return refused(`the ${options.in} ${options.name} is not a ${options.encoding} signature`);
      }
      let matches = false;
      for (const secret of secrets) {
        const expected = createHmac(options.algorithm, secret).update(request.body).digest();
        if (expected.length === signature.length && timingSafeEqual(expected, signature)) matches = true;
      }
      return matches ? verified : refused(`the signature in ${options.in} ${options.name} does not match`);
    };
  },
});

/** The signature's bytes; undefined where the text is not exactly the spelling that the encoding gives to bytes. */
function decode(text: string, { prefix = "", encoding }: HmacSettings): Buffer | undefined {
  if (!text.startsWith(prefix)) return undefined;
  const encoded = text.slice(prefix.length);
  const bytes = Buffer.from(encoded, encoding);
  const canonical = bytes.toString(encoding);
  const same =
    encoding === "hex" ? canonical === encoded.toLowerCase() : unpadded(canonical) === unpadded(encoded);
  return same && bytes.length > 0 ? bytes : undefined;
}

const unpadded = (base64: string): string => base64.replace(/=+$/, "");
