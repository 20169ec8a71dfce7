import { z } from "zod";
import { createIssueReporter, text } from "../../event/config-fields.ts";
import { FRAMING_HEADERS } from "../../lib/framing-headers.ts";

/** Request headers that users cannot set, because the HTTP client or the protocol sets them. */
const RESERVED_HEADERS: readonly string[] = ["accept-encoding", "proxy-connection", ...FRAMING_HEADERS];

/** Request headers that contain credentials. Users cannot set them, because everyone who can read the channel sees its settings. */
const SECRET_HEADERS: readonly string[] = [
  "api-key",
  "authorization",
  "cookie",
  "proxy-authorization",
  "x-api-key",
  "x-auth-token",
];

const MAX_HEADERS = 50;

/** Valid header name (RFC 9110, section 5.1). */
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/**
 * Matches a valid header value (RFC 9110, section 5.5). Leading and trailing whitespace is rejected, because it would be lost in transit.
 */
export const FIELD_VALUE = /^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/;

/** Returns why a URL must not be stored in visible settings, or `undefined` if it is allowed. Credentials belong in a connection. */
export function findUrlError(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null) return "is not a URL";
  if (url.username !== "" || url.password !== "") {
    return "must not contain credentials; use a connection instead";
  }
  return url.hash === "" ? undefined : "must not have a fragment, because fragments are never sent";
}

export const urlSchema = (findError = findUrlError) =>
  z
    .string()
    .max(2048)
    .regex(/^https?:\/\//i, { error: "must begin with https:// or http://", abort: true })
    .superRefine((text, context) => {
      const error = findError(text);
      if (error !== undefined) createIssueReporter(context)("", error);
    });

const INVALID_HEADER_VALUE =
  "is not a valid header value: line breaks and surrounding whitespace are not allowed";

/** @param reserved lowercase names of headers that users cannot set, because the channel kind sets them */
export const headersSchema = (reserved: readonly string[]) =>
  z
    .record(
      z.string().max(256).regex(FIELD_NAME, "is not a valid header name"),
      z.string().max(4096).regex(FIELD_VALUE, INVALID_HEADER_VALUE),
    )
    .superRefine((headers, context) => {
      const seen = new Set<string>();
      for (const path of Object.keys(headers)) {
        const name = path.toLowerCase();
        const message = findHeaderNameError(name, seen, reserved);
        seen.add(name);
        if (message !== undefined) context.addIssue({ code: "custom", path: [path], message });
      }
      if (seen.size > MAX_HEADERS) {
        context.addIssue({ code: "custom", message: `must have at most ${MAX_HEADERS} headers` });
      }
    })
    .default({})
    .describe(
      "Headers sent with every request. Everyone who may read the channel can see them, so put secrets in a connection.",
    );

export const querySchema = z
  .record(text(256), z.string().max(4096))
  .default({})
  .describe(
    "Query parameters added to the URL, percent-encoded. Everyone who may read the channel can see them, so put secrets in a connection.",
  );

function findHeaderNameError(
  name: string,
  seen: ReadonlySet<string>,
  reserved: readonly string[],
): string | undefined {
  if (SECRET_HEADERS.includes(name)) return "carries a secret; use a connection instead";
  if (RESERVED_HEADERS.includes(name) || reserved.includes(name)) return "is reserved, because Inlet sets it";
  return seen.has(name) ? "is a duplicate, because header names are case-insensitive" : undefined;
}
