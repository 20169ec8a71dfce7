/** Headers of one connection and of how a message is framed on it (RFC 9110, section 7.6.1): no sender's to set, and none to pass on. */
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
