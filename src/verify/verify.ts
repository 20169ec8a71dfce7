import type { RawRequest, VerifiedDelivery } from "../event/received.ts";
import { omitValues, queryValues } from "../event/values.ts";
import { err, ok, type Result } from "../lib/result.ts";
import { findScheme, type VerificationConfig } from "./schemes.ts";
import type { Consumed } from "./verifier.ts";

/** Shaped as a verified one, so that quarantine keeps both; it is for the operator to look at and never parsed. */
export type UnverifiedDelivery = Omit<VerifiedDelivery, "deliveryId">;

export interface RefusedRequest {
  /** For the log and the operator, never for the sender. */
  readonly message: string;
  /** Without what the scheme reads: a signature under the wrong secret is somebody's right one. */
  readonly redacted: () => UnverifiedDelivery;
}

/** Turns a raw request into a delivery that may be parsed; the only place that does. */
export type VerifyDelivery = (request: RawRequest) => Result<VerifiedDelivery, RefusedRequest>;

/**
 * Always taken out of `$headers`: credentials, whichever scheme reads them. The channel's address is one, and proxies repeat
 * it (Kong, Envoy, Traefik, nginx, IIS).
 */
const CREDENTIAL_HEADERS = [
  "authorization",
  "proxy-authorization",
  "cookie",
  "x-envoy-original-path",
  "x-forwarded-path",
  "x-forwarded-uri",
  "x-original-uri",
  "x-original-url",
  "x-rewrite-url",
];

/** Compiles a channel's verification settings once; the returned function runs for each of its deliveries. */
export function compileVerification(config: VerificationConfig): VerifyDelivery {
  const verifier = findScheme(config.verification).create(config.verification);
  const secrets = config.secrets.map(({ value, notBefore, notAfter }) => ({
    value,
    fromMs: notBefore === undefined ? Number.NEGATIVE_INFINITY : Date.parse(notBefore),
    toMs: notAfter === undefined ? Number.POSITIVE_INFINITY : Date.parse(notAfter),
  }));
  return (request) => {
    const valid: string[] = [];
    for (const { value, fromMs, toMs } of secrets) {
      if (fromMs <= request.arrivedAtMs && request.arrivedAtMs < toMs) valid.push(value);
    }
    const verified = verifier(request, { secrets: valid });
    if (!verified.ok) {
      const { error } = verified;
      return err({ message: error.message, redacted: () => redact(request, error) });
    }
    const { deliveryId } = verified.value;
    const delivery = redact(request, verified.value);
    return ok(deliveryId === undefined ? delivery : { ...delivery, deliveryId });
  };
}

function redact(request: RawRequest, { consumedHeaders, consumedQuery }: Consumed): UnverifiedDelivery {
  return {
    method: request.method,
    headers: omitValues(omitValues(request.headers, CREDENTIAL_HEADERS), consumedHeaders),
    query: omitValues(queryValues(request.target), consumedQuery),
    body: request.body,
    arrivedAtMs: request.arrivedAtMs,
  };
}
