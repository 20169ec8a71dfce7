import { createHash, hash } from "node:crypto";
import type { RawRequest } from "../../event/received.ts";
import { ok, type Result, unwrap } from "../../lib/result.ts";
import {
  isDeliveryId,
  reject,
  type Verification,
  type VerificationFailure,
  type VerifyContext,
} from "../verifier.ts";
import type { SignedMessageConfig } from "./config.ts";
import { compileSignatures, compileSource, isHashOf, RequestView } from "./request-view.ts";
import { compileSigningString } from "./signing-string.ts";

/** The signatures of a request and the content that they cover. They have been parsed, but not verified. */
export interface SignedMessage {
  readonly view: RequestView;
  /** Never empty. */
  readonly signatures: readonly Buffer[];
  /** Returns the signed bytes as consecutive pieces. */
  readonly bytes: (secret: string) => readonly (string | Buffer)[];
  /** Whether the signed bytes contain the secret. Each secret then requires its own check. */
  readonly dependsOnSecret: boolean;
  readonly proved: () => Verification;
}

type ReadMessage = (
  request: RawRequest,
  context: VerifyContext,
) => Result<SignedMessage, VerificationFailure>;

const NO_FACTS: Verification = {};

/**
 * Compiles the config of a signature into a function that parses a request, and checks its timestamp and any signed body hash. The
 * caller must verify the signature.
 *
 * @throws Error for a config that `checkMessage` rejects
 */
export function compileMessage(config: SignedMessageConfig): ReadMessage {
  const { render, reads } = unwrap(compileSigningString(config), "template");
  const dependsOnSecret = reads.has("secret");
  const readSignatures = compileSignatures(config);
  const readId = config.deliveryId && compileSource(config.deliveryId);
  const checkTimestamp = compileTimestampCheck(config);
  const checkBodyHash = config.bodyHash && compileBodyHashCheck(config.bodyHash);
  const { bindDedupe, noBody } = config;

  return (request, context) => {
    if (noBody && request.body.length > 0)
      return reject("mismatch", "the request has a body, which the signature does not cover");
    const view = new RequestView(request, context.readAs);
    const signatures = readSignatures(view);
    if (!signatures.ok) return signatures;
    const refused = checkTimestamp?.(view) ?? checkBodyHash?.(view);
    if (refused) return refused;
    const id = readId?.(view);
    if (id !== undefined && !isDeliveryId(id)) {
      return reject(
        "malformed",
        "the delivery id is empty, too long, or contains control characters or noncharacters",
      );
    }
    const baseUrl = config.baseUrl ?? context.hooksUrl;
    const unkeyed = render(view, { secret: "", baseUrl });
    if (!unkeyed.ok) return reject("missing", `the signed value ${unkeyed.error} is missing or repeated`);
    const pieces = unkeyed.value;
    return ok({
      view,
      signatures: signatures.value,
      dependsOnSecret,
      bytes(secret) {
        if (!dependsOnSecret) return pieces;
        const rendered = render(view, { secret, baseUrl });
        return rendered.ok ? rendered.value : [];
      },
      proved() {
        const bound = bindDedupe === "none" ? NO_FACTS : boundTo(pieces, request.body);
        return id === undefined ? bound : { ...bound, deliveryId: id };
      },
    });
  };
}

function compileTimestampCheck({ timestamp, toleranceSeconds }: SignedMessageConfig) {
  if (timestamp === undefined || toleranceSeconds === undefined) return undefined;
  const read = compileSource(timestamp.source);
  return (view: RequestView): Result<never, VerificationFailure> | undefined => {
    const text = read(view);
    if (text === undefined) return reject("missing", "the timestamp is missing or repeated");
    const atMs = parseTimestamp(text, timestamp.unit);
    if (atMs === undefined) return reject("malformed", `the timestamp is not valid ${timestamp.unit}`);
    const apartMs = Math.abs(view.request.arrivedAtMs - atMs);
    if (apartMs <= toleranceSeconds * 1_000) return undefined;
    return reject(
      "stale",
      `the timestamp differs from the time of receipt by ${Math.round(apartMs / 1_000)} s`,
    );
  };
}

const DIGITS = /^\d{1,15}$/;
/** RFC 3339 timestamp (section 5.6) with `T` and `Z` in upper case, as all known senders write them. */
const RFC_3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/;

/** Converts a timestamp to ms since 1970. Returns `undefined` if the timestamp is invalid. */
function parseTimestamp(
  text: string,
  unit: NonNullable<SignedMessageConfig["timestamp"]>["unit"],
): number | undefined {
  switch (unit) {
    case "seconds":
      return DIGITS.test(text) ? Number(text) * 1_000 : undefined;
    case "milliseconds":
      return DIGITS.test(text) ? Number(text) : undefined;
    case "rfc3339": {
      const ms = RFC_3339.test(text) ? Date.parse(text) : Number.NaN;
      return Number.isNaN(ms) ? undefined : ms;
    }
    default:
      return unit satisfies never;
  }
}

/**
 * Returns the SHA-256 digest of the signed bytes in base64url (43 characters). If the signed bytes are exactly the body, this
 * digest is also the body hash.
 */
function boundTo(pieces: readonly (string | Buffer)[], body: Buffer): Verification {
  if (pieces.length === 1 && pieces[0] === body) {
    const bodyHash = hash("sha256", body, "base64url");
    return { boundTo: bodyHash, bodyHash };
  }
  const hashing = createHash("sha256");
  for (const piece of pieces) hashing.update(piece);
  return { boundTo: hashing.digest("base64url") };
}

function compileBodyHashCheck(config: NonNullable<SignedMessageConfig["bodyHash"]>) {
  const read = compileSource(config.source);
  return (view: RequestView): Result<never, VerificationFailure> | undefined => {
    const text = read(view);
    if (text === undefined) return reject("missing", "the hash of the body is missing or repeated");
    if (isHashOf(view.request.body, text, config)) return undefined;
    return reject("mismatch", "the body does not match the signed hash");
  };
}
