import { createHmac, createPublicKey, type KeyObject, timingSafeEqual, verify } from "node:crypto";
import { z } from "zod";
import { ok } from "../../lib/result.ts";
import { isDeliveryId } from "../delivery-id.ts";
import { headerText } from "../message/request-view.ts";
import { decode, refuse } from "../message/signature.ts";
import { parseTimestamp } from "../message/timestamp.ts";
import { deriveKey, type SecretKeySettings } from "../secret-key.ts";
import { defineScheme, type VerifyContext } from "../verifier.ts";

const settings = z
  .strictObject({
    scheme: z
      .literal("standardWebhooks")
      .describe("Standard Webhooks: v1 (HMAC-SHA256) and v1a (Ed25519) over id, time and body."),
    headerPrefix: z
      .string()
      .regex(/^[A-Za-z0-9-]{1,64}-$/, "must be what its headers begin with, such as webhook-")
      .default("webhook-")
      .describe("What stands before id, timestamp and signature in the names of its headers, such as svix-."),
    secretEncoding: z
      .enum(["base64", "utf8"])
      .default("base64")
      .describe(
        "How the secrets of v1 are written, after whsec_ where they have it; those of v1a are public keys: whpk_ and base64.",
      ),
    toleranceSeconds: z
      .int()
      .min(1)
      .max(604_800)
      .default(300)
      .describe("How far the time may be from that of receipt, before or after."),
  })
  .describe("Deliveries signed by the Standard Webhooks specification, whose ids are signed too.");

type Settings = z.output<typeof settings>;

const PUBLIC_KEY_PREFIX = "whpk_";
const MAX_SIGNATURES = 16;
/** Of v1a: each is another pass over the body. */
const MAX_ATTEMPTS = 16;

/**
 * Standard Webhooks 1.0.0 (specification, "Signature scheme"): `webhook-signature` holds signatures apart by spaces, `v1,…` or
 * `v1a,…` in base64, over `id.timestamp.body`. Secrets of one version never verify the other.
 */
export const standardWebhooks = defineScheme({
  scheme: "standardWebhooks",
  settings,
  needsSecret: true,
  findWrongSecret: (options, secret) => {
    if (secret.startsWith("whsk_"))
      return "is the sender's private key: only its public key (whpk_…) is needed";
    if (secret.startsWith(PUBLIC_KEY_PREFIX))
      return publicKeyOf(secret) ? undefined : "is not whpk_ and an Ed25519 key of 32 bytes in base64";
    return deriveKey(keySettings(options), secret)
      ? undefined
      : `is not written in ${options.secretEncoding}`;
  },
  create(options) {
    const prefix = options.headerPrefix.toLowerCase();
    const [idName, timeName, signatureName] = [`${prefix}id`, `${prefix}timestamp`, `${prefix}signature`];
    const isRight = compileVersions(options);
    return {
      consumedHeaders: [signatureName],
      consumedQuery: [],
      verify({ headers, body, arrivedAtMs }, { secrets }) {
        if (secrets.length === 0) return refuse("no_secret", "the channel has no secret that is valid now");
        const id = headerText(headers[idName]);
        const time = headerText(headers[timeName]);
        const sent = headerText(headers[signatureName]);
        if (id === undefined || time === undefined || sent === undefined) {
          return refuse(
            "missing",
            `one of the headers ${prefix}id, -timestamp, -signature is missing or repeated`,
          );
        }
        if (!isDeliveryId(id)) return refuse("malformed", `the header ${idName} is no id`);
        const atMs = parseTimestamp(time, "seconds");
        if (atMs === undefined) return refuse("malformed", `the header ${timeName} is no time in seconds`);
        if (Math.abs(arrivedAtMs - atMs) > options.toleranceSeconds * 1_000) {
          return refuse("stale", `the time in ${timeName} is more than ${options.toleranceSeconds} s away`);
        }
        const signatures = sent.split(" ").filter((text) => text !== "");
        if (signatures.length > MAX_SIGNATURES) {
          return refuse(
            "malformed",
            `the header ${signatureName} holds more than ${MAX_SIGNATURES} signatures`,
          );
        }
        return isRight({ head: `${id}.${time}.`, body }, signatures, secrets)
          ? ok({ deliveryId: id })
          : refuse("mismatch", `no signature in ${signatureName} matches`);
      },
    };
  },
});

interface Content {
  readonly head: string;
  readonly body: Buffer;
}

function compileVersions(options: Settings) {
  const key = keySettings(options);
  return (
    { head, body }: Content,
    signatures: readonly string[],
    secrets: VerifyContext["secrets"],
  ): boolean => {
    const v1 = signaturesOf("v1,", signatures);
    const v1a = signaturesOf("v1a,", signatures);
    let matches = false;
    for (const expected of v1.length === 0 ? [] : digestsOf(secrets, key, head, body)) {
      for (const signature of v1) {
        if (signature.length === expected.length && timingSafeEqual(signature, expected)) matches = true;
      }
    }
    return matches || (v1a.length > 0 && isSignedBy(secrets, v1a, Buffer.concat([Buffer.from(head), body])));
  };
}

const digestsOf = (
  secrets: readonly string[],
  settings: SecretKeySettings,
  head: string,
  body: Buffer,
): readonly Buffer[] =>
  secrets
    .filter((secret) => !secret.startsWith(PUBLIC_KEY_PREFIX))
    .flatMap((secret) => deriveKey(settings, secret) ?? [])
    .map((key) => createHmac("sha256", key).update(head).update(body).digest());

const isSignedBy = (secrets: readonly string[], signatures: readonly Buffer[], content: Buffer): boolean =>
  secrets
    .flatMap((secret) => publicKeyOf(secret) ?? [])
    .flatMap((key) => signatures.map((signature) => ({ key, signature })))
    .slice(0, MAX_ATTEMPTS)
    .some(({ key, signature }) => verify(null, content, key, signature));

const signaturesOf = (version: string, signatures: readonly string[]): readonly Buffer[] =>
  signatures.flatMap((text) => decode(text, version, "base64") ?? []);

const keySettings = ({ secretEncoding }: Settings): SecretKeySettings => ({
  encoding: secretEncoding,
  stripPrefix: "whsec_",
});

function publicKeyOf(secret: string): KeyObject | undefined {
  if (!secret.startsWith(PUBLIC_KEY_PREFIX)) return undefined;
  const x = Buffer.from(secret.slice(PUBLIC_KEY_PREFIX.length), "base64");
  if (x.length !== 32) return undefined;
  return createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: x.toString("base64url") }, format: "jwk" });
}
