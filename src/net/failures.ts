import { OutboundError, type OutboundFailure } from "./outbound.ts";

/** By the codes of Node (`errno`, TLS), of undici and of its parser; the first pattern that fits. */
const FAILURES: readonly (readonly [RegExp, OutboundFailure, string])[] = [
  [/^(ENOTFOUND|EAI_.*|ENODATA)$/, "unresolved", "the name cannot be resolved"],
  [
    /^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|EADDRNOTAVAIL|EACCES)$/,
    "refused",
    "no connection is accepted",
  ],
  [/^(ETIMEDOUT|UND_ERR_(CONNECT|HEADERS|BODY)_TIMEOUT)$/, "timeout", "no answer in time"],
  [
    /^(CERT_.*|ERR_TLS_.*|ERR_SSL_.*|EPROTO|DEPTH_ZERO_.*|SELF_SIGNED_.*|UNABLE_TO_.*|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE)$/,
    "tls",
    "the TLS connection is not to be trusted",
  ],
  [
    /^(ECONNRESET|ECONNABORTED|EPIPE|UND_ERR_(SOCKET|CLOSED|DESTROYED|RES_CONTENT_LENGTH_MISMATCH))$/,
    "reset",
    "the connection broke",
  ],
];

/** Errors of undici, sockets and decoders as an `OutboundError`; one stays as it is. */
export function toOutboundError(thrown: unknown): OutboundError {
  if (thrown instanceof OutboundError) return thrown;
  const code = codeOf(thrown);
  const [, failure, message] = FAILURES.find(([pattern]) => pattern.test(code)) ?? UNKNOWN;
  return new OutboundError(failure, message, { cause: thrown });
}

const UNKNOWN = [/$/, "protocol", "the answer is not valid HTTP"] as const;

function codeOf(thrown: unknown): string {
  const { code } = (thrown ?? {}) as { readonly code?: unknown };
  return typeof code === "string" ? code : "";
}
