import type { Context } from "hono";
import { conflict } from "./problem.ts";

/** The values of a database row from which its `ETag` is computed. */
export interface Versioned {
  readonly id: string;
  readonly version: number;
  /** Version of those parts of a response that do not come from the row. Caches compare it, but `If-Match` ignores it. */
  readonly variant?: string | null;
}

const etagOf = ({ id, version, variant }: Versioned): string =>
  `"${id}.${version}${variant == null ? "" : `-${variant}`}"`;

/** Adds the row's version to the response as a strong `ETag` (RFC 9110, section 8.8.3). */
export const showVersion = (c: Context, row: Versioned): void => c.header("ETag", etagOf(row));

/**
 * Rejects a write if `If-Match` (RFC 9110, section 13.1.1) names another version of the row. Must be called with the row that the write
 * will replace.
 *
 * @throws ApiError 409
 */
export function requireMatch(c: Context, row: Versioned): void {
  const wanted = c.req.header("if-match");
  if (wanted === undefined || wanted.trim() === "*") return;
  if (strongTags(wanted).some((tag) => tag.replace(/-\w+"$/, '"') === etagOf(row))) return;
  throw conflict("The resource has changed since that version. Read it again.");
}

/** Returns true if the client already has this version (`If-None-Match`; RFC 9110, section 13.1.2). */
export function isKnown(c: Context): boolean {
  const known = c.req.header("if-none-match");
  const etag = c.res.headers.get("etag");
  if (known === undefined || etag === null) return false;
  // Weak tags are accepted too, because a proxy that changes the encoding of a response makes its tag weak.
  return known.trim() === "*" || strongTags(known.replaceAll("W/", "")).includes(etag);
}

/** Returns the strong entity tags in a header. */
const strongTags = (header: string): readonly string[] =>
  [...header.matchAll(/(W\/)?("[^"]*")/g)].filter(([, weak]) => !weak).map(([, , tag = ""]) => tag);
