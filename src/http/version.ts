import type { Context } from "hono";
import { conflict } from "./problem.ts";

/** The `ETag` of a row is made of these. */
export interface Versioned {
  readonly id: string;
  readonly version: number;
  /** Of the part of the answer that is not from the row: a cache tells by it, a write is not held up by it. */
  readonly variant?: string | null;
}

const etagOf = ({ id, version, variant }: Versioned): string =>
  `"${id}.${version}${variant == null ? "" : `-${variant}`}"`;

/** Sends the row's version along with it, as a strong `ETag` (RFC 9110, section 8.8.3). */
export const showVersion = (c: Context, row: Versioned): void => c.header("ETag", etagOf(row));

/**
 * Refuses a write that was meant for another version of the row: `If-Match` (RFC 9110, section 13.1.1), where it is sent, must
 * name this one. To be called on the row that the write replaces, after it was found.
 *
 * @throws ApiError 409
 */
export function requireMatch(c: Context, row: Versioned): void {
  const wanted = c.req.header("if-match");
  if (wanted === undefined || wanted.trim() === "*") return;
  if (strongTags(wanted).some((tag) => tag.replace(/-\w+"$/, '"') === etagOf(row))) return;
  throw conflict("It was changed since that version; read it again.");
}

/** True when the client has this very version already (`If-None-Match`; RFC 9110, section 13.1.2). */
export function isKnown(c: Context): boolean {
  const known = c.req.header("if-none-match");
  const etag = c.res.headers.get("etag");
  if (known === undefined || etag === null) return false;
  // A proxy that changes the encoding of an answer makes its tag a weak one.
  return known.trim() === "*" || strongTags(known.replaceAll("W/", "")).includes(etag);
}

/** The tags of a list that are no weak ones. */
const strongTags = (header: string): readonly string[] =>
  [...header.matchAll(/(W\/)?("[^"]*")/g)].filter(([, weak]) => !weak).map(([, , tag = ""]) => tag);
