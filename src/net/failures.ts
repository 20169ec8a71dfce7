import { OutboundError, type OutboundFailure } from "./outbound.ts";

/** Maps error codes of Node.js (`errno`, TLS), undici and its parser to failures. The first matching pattern applies. */
const FAILURES: readonly (readonly [RegExp, OutboundFailure, string])[] = [
  [/^(ENOTFOUND|EAI_.*|ENODATA)$/, "unresolved", "the host name cannot be resolved"],
  [
    /^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|EADDRNOTAVAIL|EACCES)$/,
    "refused",
    "the server does not accept connections",
  ],
  [/^(ETIMEDOUT|UND_ERR_(CONNECT|HEADERS|BODY)_TIMEOUT)$/, "timeout", "the server did not respond in time"],
  [
    /^(CERT_.*|ERR_TLS_.*|ERR_SSL_.*|EPROTO|DEPTH_ZERO_.*|SELF_SIGNED_.*|UNABLE_TO_.*|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE)$/,
    "tls",
    "the TLS handshake failed, or the certificate is not trusted",
  ],
  [
    /^(ECONNRESET|ECONNABORTED|EPIPE|UND_ERR_(SOCKET|CLOSED|DESTROYED|RES_CONTENT_LENGTH_MISMATCH))$/,
    "reset",
    "the connection broke",
  ],
];

export function toOutboundError(thrown: unknown): OutboundError {
  if (thrown instanceof OutboundError) return thrown;
  const code = getErrorCode(thrown);
  const [, failure, message] = FAILURES.find(([pattern]) => pattern.test(code)) ?? UNKNOWN;
  return new OutboundError(failure, message, { cause: thrown });
}

const UNKNOWN = [/$/, "protocol", "the response is not valid HTTP"] as const;

function getErrorCode(thrown: unknown): string {
  const { code } = (thrown ?? {}) as { readonly code?: unknown };
  return typeof code === "string" ? code : "";
}
