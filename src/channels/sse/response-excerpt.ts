import type { Redact } from "../../lib/secrets/redact.ts";
import type { OutboundStream } from "../../net/outbound.ts";

/** Media types whose bodies people can read. */
const READABLE = /^\s*(?:text\/|application\/(?:[\w.-]+\+)?(?:json|xml)\b)/i;
const MAX_BYTES = 1024;
const MAX_CHARS = 200;
/** Maximum time in ms to wait for the text. The server may keep the connection open. */
const MAX_WAIT_MS = 2_000;

/**
 * Reads the start of a response that is no event stream, for an error message, and discards the rest. Returns an empty text if the body is
 * not readable text.
 */
export async function readExcerpt({ headers, body }: OutboundStream, redact: Redact): Promise<string> {
  if (!READABLE.test([headers["content-type"]].flat()[0] ?? "")) {
    await body.cancel();
    return "";
  }
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const timer = setTimeout(() => void body.cancel(), MAX_WAIT_MS);
  try {
    for (let chunk = await body.read(); chunk !== undefined; chunk = await body.read()) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes >= MAX_BYTES) break;
    }
  } catch {
    // The text is only a part of an error message, so its first part is enough.
  } finally {
    clearTimeout(timer);
    await body.cancel();
  }
  const text = redact(Buffer.concat(chunks).toString("utf8", 0, MAX_BYTES));
  return text
    .replace(/[\s\p{Cc}]+/gu, " ")
    .trim()
    .slice(0, MAX_CHARS)
    .toWellFormed();
}
