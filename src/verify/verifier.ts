import type { z } from "zod";
import { isAttributeText } from "../event/cloud-event.ts";
import type { RawRequest } from "../event/received.ts";
import { err, type Result } from "../lib/result.ts";
import type { KeySource } from "./keys/key-source.ts";

export interface VerifyContext {
  /** Secrets that were valid when the request arrived, in configured order. */
  readonly secrets: readonly string[];
  /** Public base URL of the gateway, without `/hooks/…`. */
  readonly hooksUrl: string;
  /** Content type that overrides the one declared by the sender. */
  readonly readAs?: string | undefined;
  readonly keys: KeySource;
  /**
   * Whether a handshake of the channel signs texts for any caller. A signature over such a text does not prove who sent the
   * request.
   */
  readonly signsForAnyone?: boolean;
}

/**
 * Places from which a scheme reads credentials and signatures. Headers (lower case) and query parameters are removed from the
 * delivery, and body values are never displayed.
 */
export interface Consumed {
  readonly consumedHeaders: readonly string[];
  readonly consumedQuery: readonly string[];
  readonly consumedBody: readonly string[];
}

export interface Verification {
  /** Delivery id assigned by the sender. `undefined` if the signature does not cover an id. */
  readonly deliveryId?: string | undefined;
  /** Digest of the signed bytes, used to detect replays under another id or type. `undefined` if replays are not detected. */
  readonly boundTo?: string | undefined;
  /** SHA-256 of the body in base64url (43 characters). Only set if the signature covers exactly the body. */
  readonly bodyHash?: string | undefined;
}

/** Maximum length of a delivery id. An event id consists of the delivery id and an item index, and has at most 512 characters. */
const MAX_LENGTH = 256;

/** Returns whether a text can be a delivery id, and therefore the id of a CloudEvent. */
export const isDeliveryId = (text: string): boolean =>
  text !== "" && text.length <= MAX_LENGTH && isAttributeText(text);

/** Reason why verification failed. The set of reasons stays small and fixed, because they are also values of a metric label. */
export type FailureReason =
  | "address"
  | "no_secret"
  | "missing"
  | "malformed"
  | "stale"
  | "mismatch"
  | "unavailable";

/** A verification failure. Its message is for logs and operators, and must never reach the sender. */
export interface VerificationFailure {
  readonly reason: FailureReason;
  readonly message: string;
}

export type Verdict = Result<Verification, VerificationFailure>;

export const reject = (reason: FailureReason, message: string): Result<never, VerificationFailure> =>
  err({ reason, message });

const NO_SECRET = reject("no_secret", "the channel has no currently valid secret");

/** A compiled verification scheme that all channels with the same config share. */
export interface Verifier extends Consumed {
  /** Whether the verifier fetches public keys. Only such verifiers receive a source of keys. */
  readonly fetchesKeys?: boolean;
  /**
   * Verifies the raw bytes of a request, and compares secrets in constant time. Returns a promise only if keys must be fetched or
   * the signature library is asynchronous.
   *
   * @throws UnavailableError if the keys cannot be fetched
   */
  readonly verify: (request: RawRequest, context: VerifyContext) => Verdict | Promise<Verdict>;
}

/** Reason why a scheme does not verify deliveries whose content is the query (GET and DELETE). */
export interface QueryGap {
  /** Whether the scheme would accept such deliveries with any content. Otherwise it rejects all of them. */
  readonly isForgeable: boolean;
  readonly message: string;
}

/**
 * A verification scheme. A new scheme needs a file in `schemes/` and a line in `schemes.ts`.
 *
 * `configSchema` is a strict object with the scheme's name as the literal member `scheme`. It must reject an inconsistent config, so
 * that it is never stored.
 */
export interface VerificationScheme {
  readonly scheme: string;
  readonly configSchema: z.ZodObject;
  /** Whether the scheme needs a secret with any config. */
  readonly alwaysNeedsSecret: boolean;
  /** Returns whether verification with this config needs a secret. Without a secret, the channel has the state `needsSetup`. */
  readonly needsSecret: (config: unknown) => boolean;
  /** Returns why a secret does not fit the config, or `undefined` if it fits. The text never contains the secret. */
  readonly findWrongSecret: (config: unknown, secret: string) => string | undefined;
  /** Returns why the scheme does not verify GET and DELETE deliveries, or `undefined` if it does. */
  readonly findQueryGap: (config: unknown) => QueryGap | undefined;
  /** Returns whether verification proves that the sender chose the value at this place. */
  readonly covers: (config: unknown, place: RequestPlace) => boolean;
  /** @throws z.ZodError if the config does not match the schema `configSchema` */
  readonly create: (config: unknown) => Verifier;
}

/** A part of a request: the whole body, or a header or query parameter. Without a name, all headers or the whole query. */
export type RequestPlace =
  | { readonly in: "body" }
  | { readonly in: "header" | "query"; readonly name: string | undefined };

/**
 * Defines a scheme, and hides the type of its config so that all schemes fit in one list. Without a valid secret, verification
 * fails with `no_secret` before the verifier is called.
 */
export function defineScheme<S extends z.ZodObject>(parts: {
  readonly scheme: string;
  readonly configSchema: S;
  readonly needsSecret: boolean | ((config: z.output<S>) => boolean);
  readonly findWrongSecret?: (config: z.output<S>, secret: string) => string | undefined;
  readonly findQueryGap?: (config: z.output<S>) => QueryGap | undefined;
  readonly covers: (config: z.output<S>, place: RequestPlace) => boolean;
  readonly create: (config: z.output<S>) => Verifier;
}): VerificationScheme {
  const { needsSecret } = parts;
  const parse = (config: unknown): z.output<S> => parts.configSchema.parse(config);
  const needs = (config: z.output<S>): boolean =>
    typeof needsSecret === "boolean" ? needsSecret : needsSecret(config);
  return {
    scheme: parts.scheme,
    configSchema: parts.configSchema,
    alwaysNeedsSecret: needsSecret === true,
    needsSecret: (config) => needs(parse(config)),
    findWrongSecret: (config, secret) => parts.findWrongSecret?.(parse(config), secret),
    findQueryGap: (config) => parts.findQueryGap?.(parse(config)),
    covers: (config, place) => parts.covers(parse(config), place),
    create(config) {
      const parsed = parse(config);
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

/**
 * Memoizes values derived from a channel's secrets. Channels share verifiers, which must not retain secrets, so results are
 * cached by the identity of the secrets array.
 *
 * @returns a function that maps an array of secrets to derived values. An equal but different array is not a cache hit
 */
export function memoizePerSecret<T>(
  make: (secret: string) => T,
): (secrets: readonly string[]) => readonly T[] {
  const known = new WeakMap<readonly string[], readonly T[]>();
  return (secrets) => {
    let made = known.get(secrets);
    if (made === undefined) {
      made = secrets.map(make);
      known.set(secrets, made);
    }
    return made;
  };
}
