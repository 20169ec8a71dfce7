import { z } from "zod";
import { deriveKey, type SecretKeyConfig } from "../secret-key.ts";
import { defineScheme } from "../verifier.ts";
import { asymmetric } from "./asymmetric.ts";
import { hmac } from "./hmac.ts";

const configSchema = z
  .strictObject({
    scheme: z
      .literal("standardWebhooks")
      .describe("Standard Webhooks: v1 (HMAC-SHA256) and v1a (Ed25519) over id, timestamp and body."),
    headerPrefix: z
      .string()
      .regex(/^[A-Za-z0-9-]{1,64}-$/, "must be a header prefix that ends with -, such as webhook-")
      .default("webhook-")
      .describe("Prefix of the headers for id, timestamp and signature, such as svix-."),
    secretEncoding: z
      .enum(["base64", "utf8"])
      .default("base64")
      .describe(
        "Encoding of v1 secrets, without the optional prefix whsec_. Secrets for v1a are public keys: whpk_ followed by base64.",
      ),
    toleranceSeconds: z
      .int()
      .min(1)
      .max(604_800)
      .default(300)
      .describe(
        "Maximum difference in seconds between the timestamp and the time of receipt, in either direction.",
      ),
  })
  .describe(
    "Verifies deliveries that are signed according to the Standard Webhooks specification, including the delivery id.",
  );

const PUBLIC_KEY_PREFIX = "whpk_";
const ED25519_BYTES = 32;

/**
 * Verifies signatures of Standard Webhooks 1.0.0 (specification, "Signature scheme"). The header `webhook-signature` lists
 * signatures `v1,…` or `v1a,…` in base64, separated by spaces. They cover the text `id.timestamp.body`.
 *
 * A secret for one signature version never verifies signatures of the other version.
 */
export const standardWebhooks = defineScheme({
  scheme: "standardWebhooks",
  configSchema,
  needsSecret: true,
  findWrongSecret: ({ secretEncoding }, secret) => {
    if (secret.startsWith("whsk_"))
      return "must not be the sender's private key; enter its public key (whpk_…)";
    if (isPublicKey(secret))
      return Buffer.from(stripKeyPrefix(secret), "base64").length === ED25519_BYTES
        ? undefined
        : "must be whpk_ followed by a 32-byte Ed25519 key in base64";
    return deriveKey(keyConfig(secretEncoding), secret) ? undefined : `must be valid ${secretEncoding}`;
  },
  findQueryGap: () => ({ isForgeable: true, message: "signatures of Standard Webhooks cover only the body" }),
  covers: ({ headerPrefix }, place) =>
    place.in === "body" ||
    (place.in === "header" &&
      [`${headerPrefix}id`, `${headerPrefix}timestamp`].some((name) => name.toLowerCase() === place.name)),
  create(options) {
    const message = toMessageConfig(options);
    const v1 = hmac.create(toHmacConfig(options));
    const v1a = asymmetric.create({
      scheme: "asymmetric",
      ...message,
      prefix: "v1a,",
      algorithm: "ed25519",
      keys: { from: "secrets" },
    });
    const parts = new WeakMap<readonly string[], ReturnType<typeof splitSecrets>>();
    /** Splits secrets by signature version. The result is memoized, because verifiers cache derived values per array instance. */
    function getParts(secrets: readonly string[]): ReturnType<typeof splitSecrets> {
      const known = parts.get(secrets) ?? splitSecrets(secrets);
      parts.set(secrets, known);
      return known;
    }
    return {
      ...v1,
      verify(request, context) {
        const { secrets } = context;
        if (!secrets.some(isPublicKey)) return v1.verify(request, context);
        const { shared, publicKeys } = getParts(secrets);
        const verdict = v1.verify(request, { ...context, secrets: shared });
        if (verdict instanceof Promise || verdict.ok) return verdict;
        return v1a.verify(request, { ...context, secrets: publicKeys });
      },
    };
  },
});

export type StandardConfig = z.output<typeof configSchema>;

export const toHmacConfig = (options: StandardConfig) => ({
  scheme: "hmac",
  ...toMessageConfig(options),
  prefix: "v1,",
  key: keyConfig(options.secretEncoding),
});

function toMessageConfig({ headerPrefix, toleranceSeconds }: StandardConfig) {
  const inHeader = (name: string) => ({ in: "header", name: `${headerPrefix}${name}` });
  return {
    ...inHeader("signature"),
    items: { separator: " " },
    encoding: "base64",
    template: "{{id}}.{{timestamp}}.{{body}}",
    timestamp: { source: inHeader("timestamp") },
    deliveryId: inHeader("id"),
    toleranceSeconds,
  };
}

const isPublicKey = (secret: string): boolean => secret.startsWith(PUBLIC_KEY_PREFIX);
const splitSecrets = (secrets: readonly string[]) => ({
  shared: secrets.filter((secret) => !isPublicKey(secret)),
  publicKeys: secrets.filter(isPublicKey).map(stripKeyPrefix),
});
const stripKeyPrefix = (secret: string): string => secret.slice(PUBLIC_KEY_PREFIX.length);

const keyConfig = (encoding: SecretKeyConfig["encoding"]): SecretKeyConfig => ({
  encoding,
  stripPrefix: "whsec_",
});
