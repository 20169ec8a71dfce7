import type { Context } from "hono";
import { conflict } from "./problem.ts";

/** What of a row its `ETag` is made of. */
export interface Versioned {
  readonly id: string;
  readonly version: number;
}

const etagOf = ({ id, version }: Versioned): string => `"${id}.${version}"`;

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
  if (wanted === undefined || wanted.trim() === "*" || tagsOf(wanted).includes(etagOf(row))) return;
  throw conflict("It was changed since that version; read it again.");
}

/** True when `If-None-Match` (RFC 9110, section 13.1.2) names that tag: the client has this version already. */
export function isKnown(c: Context, etag: string | undefined): boolean {
  const known = c.req.header("if-none-match");
  if (known === undefined || etag === undefined) return false;
  return known.trim() === "*" || tagsOf(known).includes(etag);
}

/** The tags of a list; a weak one counts by what it is a variant of. */
const tagsOf = (header: string): readonly string[] => [...header.matchAll(/"[^"]*"/g)].map(([tag]) => tag);
