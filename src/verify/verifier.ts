import type { z } from "zod";
import type { RawRequest } from "../event/received.ts";
import type { Result } from "../lib/result.ts";

/** What the verification of one request may lean on: the secrets that are valid at its arrival, in the channel's order. */
export interface VerifyContext {
  readonly secrets: readonly string[];
}

/** Header and query names (headers in lower case) in which a scheme looks for a credential or signature; they go no further. */
export interface Consumed {
  readonly consumedHeaders: readonly string[];
  readonly consumedQuery: readonly string[];
}

/** What a scheme proved, and what it read to do so. */
export interface Verification extends Consumed {
  /** The sender's delivery id, only where the signature covers it. */
  readonly deliveryId?: string;
}

/** Why a request was refused: for the log and the operator, never for the sender. */
export interface VerificationFailure extends Consumed {
  readonly message: string;
}

/** Checks one request over its raw bytes, in constant time where a secret is compared. */
export type Verifier = (
  request: RawRequest,
  context: VerifyContext,
) => Result<Verification, VerificationFailure>;

/**
 * One way to know a sender: a file here and a line in `schemes.ts`. `settings` is a strict object whose `scheme` is the
 * literal name; settings that make no sense must fail there, when they are written.
 */
export interface VerificationScheme {
  readonly scheme: string;
  readonly settings: z.ZodObject;
  /** Without a secret a channel with this scheme is `needsSetup`: nothing verifies. */
  readonly needsSecret: boolean;
  /** @throws z.ZodError when the settings do not fit `settings`. */
  readonly create: (settings: unknown) => Verifier;
}

/** Makes a scheme of its typed parts; what comes out can stand in one list with all others. */
export function defineScheme<S extends z.ZodObject>(parts: {
  readonly scheme: string;
  readonly settings: S;
  readonly needsSecret: boolean;
  readonly create: (settings: z.output<S>) => Verifier;
}): VerificationScheme {
  return { ...parts, create: (settings) => parts.create(parts.settings.parse(settings)) };
}
