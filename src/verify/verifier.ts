import type { z } from "zod";
import type { RawRequest } from "../event/received.ts";
import { err, type Result } from "../lib/result.ts";
import type { KeySource } from "./keys/key-source.ts";

/** Input of a verifier besides the request itself. */
export interface VerifyContext {
  /** Secrets that were valid when the request arrived, in the channel's order. */
  readonly secrets: readonly string[];
  /** Public base URL of the gateway: the part of a channel's address before `/hooks/…`. */
  readonly hooksUrl: string;
  /** Content-Type to read the body as, when it differs from the one that the sender declares. */
  readonly readAs?: string | undefined;
  readonly keys: KeySource;
  /** Whether a handshake of the channel signs texts for any caller. A signature over such a text does not prove the sender. */
  readonly signsForAnyone?: boolean;
}

/**
 * Places where a scheme reads credentials and signatures. Headers (names in lower case) and query parameters are removed from the
 * delivery. Values at body paths cannot be removed, but are never displayed.
 */
export interface Consumed {
  readonly consumedHeaders: readonly string[];
  readonly consumedQuery: readonly string[];
  readonly consumedBody: readonly string[];
}

/** The facts that a scheme proved. */
export interface Verification {
  /** The sender's delivery id, only where the signature covers it. */
  readonly deliveryId?: string | undefined;
  /** Digest of the signed bytes. The same bytes under another id or type are a replay. `undefined` if replays are not checked. */
  readonly boundTo?: string | undefined;
  /** SHA-256 of the body in 43 base64url characters. Set only if the signature covers exactly the body; then equal to `boundTo`. */
  readonly bodyHash?: string | undefined;
}

/** An item's index is appended to the delivery id, and an event id has at most 512 characters. */
const MAX_LENGTH = 256;

/** Whether a text can be a delivery id. Lone surrogates are rejected: UTF-8 would turn all of them into the same character. */
export const isDeliveryId = (text: string): boolean =>
  text !== "" && text.length <= MAX_LENGTH && text.isWellFormed();

/** Reason for a failed verification. The set is closed, because the reason is also a metric label. */
export type FailureReason =
  | "address"
  | "no_secret"
  | "missing"
  | "malformed"
  | "stale"
  | "mismatch"
  | "unavailable";

/** A failed verification. The message is for logs and operators and must never reach the sender. */
export interface VerificationFailure {
  readonly reason: FailureReason;
  readonly message: string;
}

export type Verdict = Result<Verification, VerificationFailure>;

export const reject = (reason: FailureReason, message: string): Result<never, VerificationFailure> =>
  err({ reason, message });

const NO_SECRET = reject("no_secret", "the channel has no currently valid secret");

/** A compiled verification scheme. All channels with the same settings share one. */
export interface Verifier extends Consumed {
  /** Whether it fetches public keys. Only such verifiers receive a key source. */
  readonly fetchesKeys?: boolean;
  /**
   * Checks one request over its raw bytes and compares secrets in constant time. Returns a promise only if keys must be fetched or
   * the signature library is asynchronous.
   *
   * @throws UnavailableError if the keys cannot be fetched
   */
  readonly verify: (request: RawRequest, context: VerifyContext) => Verdict | Promise<Verdict>;
}

/**
 * A verification scheme: one file in `schemes/` and one line in `schemes.ts`. `settings` is a strict object whose `scheme` is the
 * literal name. The schema must reject inconsistent settings when they are written.
 */
export interface VerificationScheme {
  readonly scheme: string;
  readonly settings: z.ZodObject;
  /** Whether the scheme needs a secret whatever its settings. */
  readonly alwaysNeedsSecret: boolean;
  /** Whether verification with these settings requires a secret. Without one, the channel is `needsSetup`. */
  readonly needsSecret: (settings: unknown) => boolean;
  /** Returns why a secret does not fit the settings, or `undefined` if it does. The message never contains the secret. */
  readonly findWrongSecret: (settings: unknown, secret: string) => string | undefined;
  /** @throws z.ZodError if the settings do not match the schema `settings` */
  readonly create: (settings: unknown) => Verifier;
}

/**
 * Defines a scheme from its typed parts and erases the type of its settings, so that all schemes fit in one list. If the settings
 * need a secret and none is valid, the scheme fails with `no_secret` without calling the verifier.
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
