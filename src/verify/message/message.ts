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
import { compileSource, RequestView } from "./request-view.ts";
import type { SignedMessageSettings } from "./settings.ts";
import { compileSignatures, isHashOf } from "./signature.ts";
import { compileSigningString } from "./signing-string.ts";

/** A request read as its sender says it is signed; nothing of it is proved yet. */
export interface SignedMessage {
  readonly view: RequestView;
  /** At least one. */
  readonly signatures: readonly Buffer[];
  /** The signed text, in pieces. */
  readonly bytes: (secret: string) => readonly (string | Buffer)[];
  /** True where that is another for each secret. */
  readonly dependsOnSecret: boolean;
  /** The facts that a right signature proves. */
  readonly proved: () => Verification;
}

type ReadMessage = (
  request: RawRequest,
  context: VerifyContext,
) => Result<SignedMessage, VerificationFailure>;

const NO_FACTS: Verification = {};

/**
 * Compiles the settings of a signature over a message. A time is checked against that of receipt, and a hash that is signed
 * in place of the body against the body: what is left is the signature itself.
 *
 * @throws Error for settings that `checkMessage` refuses
 */
export function compileMessage(settings: SignedMessageSettings): ReadMessage {
  const { render, reads } = unwrap(compileSigningString(settings), "template");
  const dependsOnSecret = reads.has("secret");
  const readSignatures = compileSignatures(settings);
  const readId = settings.deliveryId && compileSource(settings.deliveryId);
  const checkTimestamp = compileTimestampCheck(settings);
  const checkBodyHash = settings.bodyHash && compileBodyHashCheck(settings.bodyHash);
  const { bindDedupe } = settings;

  return (request, context) => {
    const view = new RequestView(request, context.readAs);
    const signatures = readSignatures(view);
    if (!signatures.ok) return signatures;
    const refused = checkTimestamp?.(view) ?? checkBodyHash?.(view);
    if (refused) return refused;
    const id = readId?.(view);
    if (id !== undefined && !isDeliveryId(id)) {
      return reject("malformed", "the delivery id is empty, too long, or no Unicode");
    }
    const baseUrl = settings.baseUrl ?? context.hooksUrl;
    const unkeyed = render(view, { secret: "", baseUrl });
    if (!unkeyed.ok) return reject("missing", `${unkeyed.error} is missing or repeated, and is signed`);
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

function compileTimestampCheck({ timestamp, toleranceSeconds }: SignedMessageSettings) {
  if (timestamp === undefined || toleranceSeconds === undefined) return undefined;
  const read = compileSource(timestamp.source);
  return (view: RequestView): Result<never, VerificationFailure> | undefined => {
    const text = read(view);
    if (text === undefined) return reject("missing", "the time is missing or repeated");
    const atMs = parseTimestamp(text, timestamp.unit);
    if (atMs === undefined) return reject("malformed", `the time is none in ${timestamp.unit}`);
    const apartMs = Math.abs(view.request.arrivedAtMs - atMs);
    if (apartMs <= toleranceSeconds * 1_000) return undefined;
    return reject("stale", `the time is ${Math.round(apartMs / 1_000)} s from that of receipt`);
  };
}

const DIGITS = /^\d{1,15}$/;
/** RFC 3339 section 5.6, in capitals as senders write it. */
const RFC_3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/;

/** The time that a text says, in ms since 1970; undefined where it says none. */
function parseTimestamp(
  text: string,
  unit: NonNullable<SignedMessageSettings["timestamp"]>["unit"],
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

/** 256 bits as 43 base64url characters. */
function boundTo(pieces: readonly (string | Buffer)[], body: Buffer): Verification {
  if (pieces.length === 1 && pieces[0] === body) {
    const bodyHash = hash("sha256", body, "base64url");
    return { boundTo: bodyHash, bodyHash };
  }
  const hashing = createHash("sha256");
  for (const piece of pieces) hashing.update(piece);
  return { boundTo: hashing.digest("base64url") };
}

/** Compiles the check that the body is the one whose hash was signed. */
function compileBodyHashCheck(settings: NonNullable<SignedMessageSettings["bodyHash"]>) {
  const read = compileSource(settings.source);
  return (view: RequestView): Result<never, VerificationFailure> | undefined => {
    const text = read(view);
    if (text === undefined) return reject("missing", "the hash of the body is missing or repeated");
    if (isHashOf(view.request.body, text, settings)) return undefined;
    return reject("mismatch", "the body is not the one whose hash is signed");
  };
}
