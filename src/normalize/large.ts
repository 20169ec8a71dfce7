import { parseBodyFormat } from "./body/bodies.ts";

/**
 * Maximum size in bytes of an XML body to parse on the main thread. A larger body takes ten times as long to parse as to hand to
 * another thread.
 */
const MAX_XML_BYTES = 2 * 1024;
/**
 * Maximum size in bytes of a non-XML body to parse on the main thread. JSON of this size takes up to 2 ms to parse, and queries may
 * visit every node.
 */
const MAX_BYTES = 128 * 1024;

/** Returns whether a body must be parsed in another thread, because parsing it here would block the event loop. */
export function isLarge(bytes: number, contentType: string | undefined): boolean {
  if (bytes <= MAX_XML_BYTES) return false;
  return bytes > MAX_BYTES || parseBodyFormat(contentType)?.kind === "xml";
}
