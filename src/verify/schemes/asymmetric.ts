import { z } from "zod";
import { checkFields } from "../../lib/check-fields.ts";
import { ok, type Result } from "../../lib/result.ts";
import { signatureKeysSchema } from "../keys/config.ts";
import { areKeysFetched, compileKeys } from "../keys/find-keys.ts";
import { isValidAt, type PublicKey, parsePublicKeys } from "../keys/parse-keys.ts";
import {
  isKeyForAlgorithm,
  isSignatureValid,
  SIGNATURE_ALGORITHMS,
  type SignatureAlgorithm,
  type SignatureForm,
} from "../keys/signature-algorithms.ts";
import { checkMessage, coversPlace, findQueryGap } from "../message/check-message.ts";
import { signedMessageFields } from "../message/config.ts";
import { compileMessage, type SignedMessage } from "../message/message.ts";
import { compileSource, consumedBy, type RequestView } from "../message/request-view.ts";
import { requestSourceSchema } from "../message/source.ts";
import { defineScheme, reject, type Verdict, type VerificationFailure } from "../verifier.ts";

const algorithm = z.enum(SIGNATURE_ALGORITHMS);

const shape = z.strictObject({
  scheme: z
    .literal("asymmetric")
    .describe("A signature made with a private key: Ed25519, ECDSA or RSA (PKCS #1 v1.5)."),
  algorithm: algorithm
    .optional()
    .describe(
      "Signature algorithm. Inlet ignores keys of other types. rsa-sha1 is weak and needs `allowWeak`.",
    ),
  algorithmFrom: z
    .strictObject({
      source: requestSourceSchema.describe("Location of the algorithm's name in the request."),
      values: z
        .record(z.string().min(1).max(64), algorithm)
        .refine((values) => Object.keys(values).length <= 8, "must have at most 8 entries")
        .describe(
          "Maps each accepted name to a signature algorithm. Inlet rejects deliveries with any other name.",
        ),
    })
    .optional()
    .describe(
      "How to select the algorithm for each request. Use this setting instead of `algorithm` if the sender uses several algorithms.",
    ),
  ecdsaFormat: z
    .enum(["der", "ieee-p1363"])
    .default("der")
    .describe("Format of ECDSA signatures: ASN.1 DER, or the concatenation of r and s in full length."),
  keys: signatureKeysSchema,
  ...signedMessageFields,
});

type AsymmetricConfig = z.output<typeof shape>;

const USES_SECRET = /\{\{\s*secret\b/;

const configSchema = shape
  .check(
    checkMessage,
    checkFields(({ algorithm, algorithmFrom, allowWeak, keys, template = "" }, note) => {
      if ((algorithm === undefined) === (algorithmFrom === undefined)) {
        note("algorithm", "set either `algorithm` or `algorithmFrom`");
      }
      const used = [algorithm, ...Object.values(algorithmFrom?.values ?? {})];
      if (!allowWeak && used.includes("rsa-sha1")) {
        const field = algorithm === undefined ? "algorithmFrom" : "algorithm";
        note(field, "rsa-sha1 is weak and needs `allowWeak: true`");
      }
      if (keys.from === "secrets" && USES_SECRET.test(template)) {
        note("template", "must not contain {{secret}}, because the channel's secrets are public keys");
      }
    }),
  )
  .describe("Verifies deliveries that are signed with a private key.");

/** Verifies a signature with public keys of the sender. The signature covers the raw body, or a text that contains the body. */
export const asymmetric = defineScheme({
  scheme: "asymmetric",
  configSchema,
  needsSecret: ({ keys, template = "" }) => keys.from === "secrets" || USES_SECRET.test(template),
  findWrongSecret: ({ keys }, secret) =>
    keys.from === "secrets" && parsePublicKeys(secret) === undefined
      ? "must be a public key in a supported format"
      : undefined,
  findQueryGap,
  covers: coversPlace,
  create(options) {
    const read = compileMessage(options);
    const findAlgorithm = compileAlgorithm(options);
    const findKeys = compileKeys(options.keys);
    const readId =
      options.keys.from === "url" && options.keys.keyId ? compileSource(options.keys.keyId) : undefined;
    const mismatch = reject("mismatch", "no signature matches any of the sender's keys");
    return {
      ...consumedBy(options),
      fetchesKeys: areKeysFetched(options.keys),
      verify(request, context) {
        const message = read(request, context);
        if (!message.ok) return message;
        const { view, dependsOnSecret, proved } = message.value;
        const algorithm = findAlgorithm(view);
        if (!algorithm.ok) return algorithm;
        const keyId = readId?.(view);
        if (readId !== undefined && keyId === undefined) {
          return reject("missing", "the key id is missing or repeated");
        }
        const found = findKeys(view, context);
        if (!found.ok) return found;
        const isRight = (keys: readonly PublicKey[]): boolean =>
          isSignedBy(
            message.value,
            keys.filter(
              (one) =>
                (keyId === undefined || one.id === keyId) &&
                isValidAt(one, request.arrivedAtMs) &&
                isKeyForAlgorithm(one.key, algorithm.value, options.allowWeak),
            ),
            { algorithm: algorithm.value, ecdsaFormat: options.ecdsaFormat },
            dependsOnSecret ? context.secrets : [""],
          );
        const judge = (keys: readonly PublicKey[]): Verdict | Promise<Verdict> => {
          if (isRight(keys)) return ok(proved());
          // The sender may have rotated its keys since the last fetch, so fetch the keys again and retry.
          const renewed = found.value.renew?.();
          return renewed
            ? renewed.then((others) => (others && isRight(others) ? ok(proved()) : mismatch))
            : mismatch;
        };
        const { keys } = found.value;
        return keys instanceof Promise ? keys.then(judge) : judge(keys);
      },
    };
  },
});

function isSignedBy(
  { signatures, bytes }: SignedMessage,
  keys: readonly PublicKey[],
  form: SignatureForm,
  secrets: readonly string[],
): boolean {
  let attempts = 0;
  return secrets.some((secret) => {
    const content = Buffer.concat(
      bytes(secret).map((piece) => (typeof piece === "string" ? Buffer.from(piece) : piece)),
    );
    return keys.some(({ key }) =>
      signatures.some(
        (signature) => ++attempts <= MAX_ATTEMPTS && isSignatureValid(key, form, content, signature),
      ),
    );
  });
}

/**
 * Maximum number of verification attempts per request (keys × signatures × secrets), because each attempt hashes the signed bytes
 * again.
 */
const MAX_ATTEMPTS = 64;

function compileAlgorithm({ algorithm, algorithmFrom }: AsymmetricConfig) {
  const fixed = algorithm && ok(algorithm);
  const read = algorithmFrom && compileSource(algorithmFrom.source);
  const known = new Map(Object.entries(algorithmFrom?.values ?? {}));
  return (view: RequestView): Result<SignatureAlgorithm, VerificationFailure> => {
    if (fixed) return fixed;
    const said = known.get(read?.(view) ?? "");
    return said === undefined
      ? reject("malformed", "the request does not name an accepted algorithm")
      : ok(said);
  };
}
