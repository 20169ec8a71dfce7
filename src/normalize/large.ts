import { bodyFormatOf } from "./body/bodies.ts";

/** Reading XML takes 0.7 µs a character at worst: more of it takes ten times as long as to send it. */
const MAX_XML_BYTES = 2 * 1024;
/** Queries visit up to a million nodes, and no more than stand in the text. */
const MAX_QUERIED_BYTES = 128 * 1024;
const MAX_BYTES = 1024 * 1024;

/** True of a body that would hold up the event loop: it is read in another thread. */
export function isLarge(
  bytes: number,
  { contentType, hasQueries }: { readonly contentType: string | undefined; readonly hasQueries: boolean },
): boolean {
  if (bytes <= MAX_XML_BYTES) return false;
  if (bytes > (hasQueries ? MAX_QUERIED_BYTES : MAX_BYTES)) return true;
  return bodyFormatOf(contentType)?.kind === "xml";
}
