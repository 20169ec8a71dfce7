import { parseBodyFormat } from "./body/bodies.ts";

/** Reading XML takes 0.7 µs a character at worst: more of it takes ten times as long as to send it. */
const MAX_XML_BYTES = 2 * 1024;
/** JSON of many small values takes 2 ms; queries may visit as many nodes as stand in the text. */
const MAX_BYTES = 128 * 1024;

/** True of a body that would hold up the event loop: it is read in another thread. */
export function isLarge(bytes: number, contentType: string | undefined): boolean {
  if (bytes <= MAX_XML_BYTES) return false;
  return bytes > MAX_BYTES || parseBodyFormat(contentType)?.kind === "xml";
}
