import { createHmac, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { queryValues } from "../event/values.ts";
import { err, ok } from "../lib/result.ts";
import { defineScheme } from "./verifier.ts";

const settings = z.strictObject({
  scheme: z.literal("hmac").describe("A keyed hash (RFC 2104) of the body."),
  algorithm: z.enum(["sha256"]).default("sha256").describe("The hash."),
  encoding: z.enum(["hex", "base64", "base64url"]).default("hex").describe("How the signature is written."),
  in: z.enum(["header", "query"]).default("header").describe("Where the signature stands."),
  name: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{1,128}$/, "must be the name of a header or query parameter")
    .describe("The header (any case) or query parameter that carries the signature."),
  prefix: z.string().min(1).max(64).optional().describe("What stands before the signature, such as sha256=."),
});

type HmacSettings = z.output<typeof settings>;

/**
 * A keyed hash (RFC 2104) of the raw body under any of the channel's secrets. All secrets are tried and each comparison
 * takes constant time, so that neither the time nor the answer tells which one was close.
 */
export const hmac = defineScheme({
  scheme: "hmac",
  settings,
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
