import type { z } from "zod";
import type { RawRequest } from "../event/received.ts";
import { err, type Result } from "../lib/result.ts";
import type { KeySource } from "./keys/key-source.ts";

/** The context of the verification of one request. */
export interface VerifyContext {
  /** The secrets that are valid at its arrival, in the channel's order. */
  readonly secrets: readonly string[];
  /** The part of the address before `/hooks/…`, as the gateway tells it. */
  readonly hooksUrl: string;
  /** The Content-Type by which the body is read, where that is not what the sender says. */
  readonly readAs?: string | undefined;
  /** Public keys that are fetched. */
  readonly keys: KeySource;
  /** True where a handshake of the channel signs for anyone who asks: a signature over no more than that proves nothing. */
  readonly signsForAnyone?: boolean;
}

/**
 * Header and query names (headers in lower case) in which a scheme looks for a credential or signature; they go no further. And paths
 * of the body: what stands there cannot be taken out, but is shown to nobody.
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
  /** A digest of what was signed, where the same again under another id or type is a replay. */
  readonly boundTo?: string | undefined;
  /** SHA-256 of the body, 43 base64url characters: of a signature over the body and nothing else that is `boundTo`. */
  readonly bodyHash?: string | undefined;
}

/** Room is left for the place of an item behind it: an event's id has 512 characters at most. */
const MAX_LENGTH = 256;

/** True for what can name a delivery. Lone surrogates would all become one and the same character in UTF-8. */
export const isDeliveryId = (text: string): boolean =>
  text !== "" && text.length <= MAX_LENGTH && text.isWellFormed();

/** Why a request is not believed. A closed set: it is also a metric label. */
export type RefusalReason =
  | "address"
  | "no_secret"
  | "missing"
  | "malformed"
  | "stale"
  | "mismatch"
  | "unavailable";

/** A request that is not believed; the message is for the log and the operator, never for the sender. */
export interface Refusal {
  readonly reason: RefusalReason;
  readonly message: string;
}

export type Verdict = Result<Verification, Refusal>;

export const refuse = (reason: RefusalReason, message: string): Result<never, Refusal> =>
  err({ reason, message });

const NO_SECRET = refuse("no_secret", "the channel has no secret that is valid now");

/** A way to know a sender, ready to be asked: by all channels that have the same settings. */
export interface Verifier extends Consumed {
  /** True where it may ask for keys that are fetched: no other is given any. */
  readonly fetchesKeys?: boolean;
  /**
   * Checks one request over its raw bytes, in constant time where a secret is compared; at once, unless keys must be fetched or
   * the signature is one that only answers by a promise.
   *
   * @throws UnavailableError where the keys cannot be had now.
   */
  readonly verify: (request: RawRequest, context: VerifyContext) => Verdict | Promise<Verdict>;
}

/**
 * One way to know a sender: a file here and a line in `schemes.ts`. `settings` is a strict object whose `scheme` is the
 * literal name; settings that make no sense must fail there, when they are written.
 */
export interface VerificationScheme {
  readonly scheme: string;
  readonly settings: z.ZodObject;
  /** True where all settings need a secret. */
  readonly alwaysNeedsSecret: boolean;
  /** True where a channel with these settings verifies nothing before it has a secret: until then it is `needsSetup`. */
  readonly needsSecret: (settings: unknown) => boolean;
  /** Why a secret can be none of these settings'; undefined where it can. It never repeats the secret. */
  readonly findWrongSecret: (settings: unknown, secret: string) => string | undefined;
  /** @throws z.ZodError when the settings do not fit `settings`. */
  readonly create: (settings: unknown) => Verifier;
}

/**
 * Makes a scheme of its typed parts; what comes out can stand in one list with all others. Where the settings need a secret,
 * the verifier is asked only while there is one.
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
