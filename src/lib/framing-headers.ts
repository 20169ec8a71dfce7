/**
 * Headers that concern only the connection or message framing (RFC 9110, section 7.6.1). Users cannot set these headers, and the
 * gateway never forwards them.
 */
export const FRAMING_HEADERS: readonly string[] = [
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];
