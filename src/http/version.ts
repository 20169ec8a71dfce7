import type { Context } from "hono";
import { conflict } from "./errors.ts";

export interface Versioned {
  readonly id: string;
  readonly version: number;
  /** Version of data that is not part of the database row. It counts for `If-None-Match`, but not for `If-Match`. */
  readonly variant?: string | null;
}

const etagOf = ({ id, version, variant }: Versioned): string =>
  `"${id}.${version}${variant == null ? "" : `-${variant}`}"`;

/** Sets the `ETag` header to the version of a database row (RFC 9110, section 8.8.3). */
export const showVersion = (c: Context, row: Versioned): void => c.header("ETag", etagOf(row));

/**
 * Rejects a write if its `If-Match` header (RFC 9110, section 13.1.1) names another version than the current row.
 *
 * @throws ApiError 409
 */
export function requireMatch(c: Context, row: Versioned): void {
  const wanted = c.req.header("if-match");
  if (wanted === undefined || wanted.trim() === "*") return;
  if (strongTags(wanted).some((tag) => tag.replace(/-\w+"$/, '"') === etagOf(row))) return;
  throw conflict(
    "The resource has changed since the version in If-Match. Read it again, then repeat your change.",
  );
}

/** Returns whether the client already has the current version, according to `If-None-Match` (RFC 9110, section 13.1.2). */
export function isKnown(c: Context): boolean {
  const known = c.req.header("if-none-match");
  const etag = c.res.headers.get("etag");
  if (known === undefined || etag === null) return false;
  // A proxy that compresses responses marks tags as weak, so weak tags must match too.
  return known.trim() === "*" || strongTags(known.replaceAll("W/", "")).includes(etag);
}

const strongTags = (header: string): readonly string[] =>
  [...header.matchAll(/(W\/)?("[^"]*")/g)].filter(([, weak]) => !weak).map(([, , tag = ""]) => tag);
