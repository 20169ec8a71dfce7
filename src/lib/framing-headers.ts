/**
 * Headers that belong to the connection or to message framing (RFC 9110, section 7.6.1). Users cannot set them, and Inlet never
 * forwards them.
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
