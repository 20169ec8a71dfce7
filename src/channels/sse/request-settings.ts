import { z } from "zod";

/** Of the connection, the body or the protocol, and so for the gateway to say. */
const OWN_HEADERS = new Set([
  "accept",
  "accept-encoding",
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "last-event-id",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Settings are shown to whoever may read the channel. */
const SECRET_HEADERS = new Set([
  "api-key",
  "authorization",
  "cookie",
  "proxy-authorization",
  "x-api-key",
  "x-auth-token",
]);

const MAX_HEADERS = 50;

/** An absolute address of HTTP that may be shown: credentials belong into a connection. */
export const urlSchema = z
  .string()
  .max(2048)
  .regex(/^https?:\/\//i, "must begin with https:// or http://")
  .superRefine((text, context) => {
    const url = URL.parse(text);
    const message = url === null ? "is not a URL" : flawOf(url);
    if (message !== undefined) context.addIssue({ code: "custom", message });
  });

/** Names are tokens, values what a field of HTTP may hold (RFC 9110, sections 5.1 and 5.5). */
export const headersSchema = z
  .record(
    z
      .string()
      .max(256)
      .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, "is not the name of a header"),
    z
      .string()
      .max(4096)
      .regex(
        /^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/,
        "is not the value of a header",
      ),
  )
  .superRefine((headers, context) => {
    const seen = new Set<string>();
    for (const name of Object.keys(headers)) {
      const message = refusalOf(name.toLowerCase(), seen);
      seen.add(name.toLowerCase());
      if (message !== undefined) context.addIssue({ code: "custom", path: [name], message });
    }
    if (seen.size > MAX_HEADERS)
      context.addIssue({ code: "custom", message: `holds more than ${MAX_HEADERS}` });
  });

function flawOf(url: URL): string | undefined {
  if (url.username !== "" || url.password !== "") {
    return "must not hold credentials: they belong into a connection";
  }
  return url.hash === "" ? undefined : "must not have a fragment: it is never sent";
}

function refusalOf(name: string, seen: ReadonlySet<string>): string | undefined {
  if (SECRET_HEADERS.has(name)) return "is a secret, and belongs into a connection";
  if (OWN_HEADERS.has(name)) return "is set by Inlet itself";
  return seen.has(name) ? "stands twice, in other letters" : undefined;
}
