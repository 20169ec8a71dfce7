import { parseBodyFormat } from "./body/bodies.ts";

/** Parsing XML takes up to 0.7 µs per character, so beyond this size it takes ten times as long as hand-off to a thread. */
const MAX_XML_BYTES = 2 * 1024;
/** JSON of this size with many small values takes 2 ms to parse, and queries may visit every node. */
const MAX_BYTES = 128 * 1024;

/** Whether a body would block the event loop for too long and must be parsed in another thread. */
export function isLarge(bytes: number, contentType: string | undefined): boolean {
  if (bytes <= MAX_XML_BYTES) return false;
  return bytes > MAX_BYTES || parseBodyFormat(contentType)?.kind === "xml";
}
