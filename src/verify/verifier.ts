import type { z } from "zod";
import type { RawRequest } from "../event/received.ts";
import { err, type Result } from "../lib/result.ts";
import type { KeySource } from "./keys/key-source.ts";

/** Input that a verifier needs in addition to the request. */
export interface VerifyContext {
  /** The secrets that were valid when the request arrived, in the order of the channel's settings. */
  readonly secrets: readonly string[];
  /** Public base URL of the gateway: the part of a channel's address before `/hooks/…`. */
  readonly hooksUrl: string;
  /** Content type to use for reading the body, if it differs from the one that the sender declares. */
  readonly readAs?: string | undefined;
  readonly keys: KeySource;
  /**
   * Whether a handshake of the channel signs texts for any caller. A signature over such a text does not prove who sent a
   * request.
   */
  readonly signsForAnyone?: boolean;
}

/**
 * Places where a scheme reads credentials and signatures. Headers (names in lower case) and query parameters at these places
 * are removed from the delivery.
 *
 * Values in the body cannot be removed, but they are never displayed.
 */
export interface Consumed {
  readonly consumedHeaders: readonly string[];
  readonly consumedQuery: readonly string[];
  readonly consumedBody: readonly string[];
}

/** Facts about a delivery that its verification has proved. */
export interface Verification {
  /** Delivery id from the sender. `undefined` if the signature does not cover it. */
  readonly deliveryId?: string | undefined;
  /**
   * Digest of the signed bytes. The same signed bytes with a different id or type are a replay. `undefined` if replays are not
   * checked.
   */
  readonly boundTo?: string | undefined;
  /**
   * SHA-256 of the body, in 43 base64url characters. Set only if the signature covers exactly the body. It then equals
   * `boundTo`.
   */
  readonly bodyHash?: string | undefined;
}

/** Maximum length of a delivery id. The index of an item is appended to it, and an event id has at most 512 characters. */
const MAX_LENGTH = 256;

/**
 * Returns whether a text can be a delivery id. Rejects lone surrogates, because UTF-8 would turn all of them into the same
 * character.
 */
export const isDeliveryId = (text: string): boolean =>
  text !== "" && text.length <= MAX_LENGTH && text.isWellFormed();

/** Reason why verification failed. The reasons are a fixed set, because they are also values of a metric label. */
export type FailureReason =
  | "address"
  | "no_secret"
  | "missing"
  | "malformed"
  | "stale"
  | "mismatch"
  | "unavailable";

/** Describes why verification failed. The message is for logs and operators, and must never reach the sender. */
export interface VerificationFailure {
  readonly reason: FailureReason;
  readonly message: string;
}

export type Verdict = Result<Verification, VerificationFailure>;

export const reject = (reason: FailureReason, message: string): Result<never, VerificationFailure> =>
  err({ reason, message });

const NO_SECRET = reject("no_secret", "the channel has no currently valid secret");

/** A compiled verification scheme. All channels with the same settings share one verifier. */
export interface Verifier extends Consumed {
  /** Whether the verifier fetches public keys. Only such verifiers receive a key source. */
  readonly fetchesKeys?: boolean;
  /**
   * Verifies the raw bytes of a request. Compares secrets in constant time. Returns a promise only if keys must be fetched, or
   * if the signature library is asynchronous.
   *
   * @throws UnavailableError if the keys cannot be fetched
   */
  readonly verify: (request: RawRequest, context: VerifyContext) => Verdict | Promise<Verdict>;
}

/**
 * A verification scheme. To add one, add a file to `schemes/` and a line to `schemes.ts`.
 *
 * `settings` is a strict object, and its member `scheme` is the literal name of the scheme. The schema must reject inconsistent
 * settings, so that they are never stored.
 */
export interface VerificationScheme {
  readonly scheme: string;
  readonly settings: z.ZodObject;
  /** Whether the scheme needs a secret with any settings. */
  readonly alwaysNeedsSecret: boolean;
  /** Returns whether verification with these settings needs a secret. A channel without the secret has the state `needsSetup`. */
  readonly needsSecret: (settings: unknown) => boolean;
  /**
   * Returns the reason why a secret does not fit the settings, or `undefined` if it does. The reason never contains the secret.
   */
  readonly findWrongSecret: (settings: unknown, secret: string) => string | undefined;
  /** Creates a verifier. @throws z.ZodError if the settings do not match the schema `settings` */
  readonly create: (settings: unknown) => Verifier;
}

/**
 * Defines a scheme from typed parts. The result hides the type of the settings, so that all schemes fit in one list.
 *
 * If the settings need a secret and no secret is valid, verification fails with `no_secret` without calling the verifier.
 */
export function defineScheme<S extends z.ZodObject>(parts: {
  readonly scheme: string;
  readonly settings: S;
  readonly needsSecret: boolean | ((settings: z.output<S>) => boolean);
  readonly findWrongSecret?: (settings: z.output<S>, secret: string) => string | undefined;
  readonly create: (settings: z.output<S>) => Verifier;
}): VerificationScheme {
  const { needsSecret } = parts;
  const parse = (settings: unknown): z.output<S> => parts.settings.parse(settings);
  const needs = (settings: z.output<S>): boolean =>
    typeof needsSecret === "boolean" ? needsSecret : needsSecret(settings);
  return {
    scheme: parts.scheme,
    settings: parts.settings,
    alwaysNeedsSecret: needsSecret === true,
    needsSecret: (settings) => needs(parse(settings)),
    findWrongSecret: (settings, secret) => parts.findWrongSecret?.(parse(settings), secret),
    create(settings) {
      const parsed = parse(settings);
      const verifier = parts.create(parsed);
      if (!needs(parsed)) return verifier;
      return {
        ...verifier,
        verify: (request, context) =>
          context.secrets.length === 0 ? NO_SECRET : verifier.verify(request, context),
      };
    },
  };
}
