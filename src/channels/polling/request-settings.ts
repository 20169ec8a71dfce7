import { z } from "zod";
import { exceedsDepth } from "../../normalize/depth.ts";
import { FILTER_NAMES } from "./template-values.ts";

const MIB = 1024 * 1024;
const MAX_HEADERS = 50;
/** Deeper bodies are nobody's query, and would be walked on every request. */
const MAX_BODY_DEPTH = 16;

/** Of the connection, the body or the protocol, and so for the gateway to say. */
const OWN_HEADERS: readonly string[] = [
  "accept-encoding",
  "connection",
  "content-length",
  "expect",
  "host",
  "if-modified-since",
  "if-none-match",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

/** Settings are shown to whoever may read the channel. */
const SECRET_HEADERS: readonly string[] = [
  "api-key",
  "authorization",
  "cookie",
  "proxy-authorization",
  "x-api-key",
  "x-auth-token",
];

/** What stands before the first placeholder must hold all that decides who is called. */
const ORIGIN = /^https?:\/\/[^/?#\\{}]+(?:[/?]|$)/i;

const urlSchema = z
  .string()
  .max(2048)
  .superRefine((text, context) => {
    const message = flawOf(text);
    if (message !== undefined) context.addIssue({ code: "custom", message });
  });

/** Names are tokens (RFC 9110, section 5.1). */
const headersSchema = z
  .record(
    z
      .string()
      .max(256)
      .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, "is not the name of a header"),
    z
      .string()
      .max(4096)
      .regex(/^[\t\x20-\x7e\x80-\xff]*$/, "is not the value of a header"),
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

const bodySchema = z
  .union([z.string().max(MIB), z.record(z.string(), z.unknown())])
  .refine((body) => !exceedsDepth(body, MAX_BODY_DEPTH), {
    message: `nests deeper than ${MAX_BODY_DEPTH}`,
  });

/** The request of a poll. All texts of it but names are templates. */
export const requestSettings = z
  .strictObject({
    method: z
      .enum(["GET", "POST"])
      .default("GET")
      .describe("Failed calls are tried again within a poll only where it is GET."),
    url: urlSchema.describe(
      "Where items are asked for. What is put in after a placeholder is percent-encoded; scheme, host and port hold none.",
    ),
    headers: headersSchema
      .default({})
      .describe(
        "Sent with every request. They are shown to whoever reads the channel: secrets belong into a connection.",
      ),
    query: z
      .record(z.string().min(1).max(256), z.string().max(4096))
      .default({})
      .describe("Added to the url, encoded. Shown like the headers: secrets belong into a connection."),
    body: bodySchema
      .optional()
      .describe(
        "Sent with a POST: an object as JSON, in which each text is a template; or a text, for which `headers` names the content-type.",
      ),
  })
  .describe(
    `How items are asked for, with placeholders: {{cursor}} is where the source stands (an instant, a number, a token), {{page}} the page of \`pagination\`, {{now}} the time of the poll, {{lastPollAt}} that of the last one that came to its end. Filters say how they are written: {{cursor | iso}}; there are ${FILTER_NAMES.join(", ")}. Query parameters, headers and members of the body whose value does not exist yet are left out.`,
  );

export type RequestSettings = z.output<typeof requestSettings>;

/** Scheme, host and port of all calls of a channel. */
export const originOf = ({ url }: Pick<RequestSettings, "url">): string =>
  new URL(ORIGIN.exec(url)?.[0] ?? url).origin;

function flawOf(text: string): string | undefined {
  if (!/^https?:\/\//i.test(text)) return "must begin with https:// or http://";
  const start = ORIGIN.exec(text)?.[0];
  if (start === undefined || URL.parse(start) === null) {
    return "must name its host and port without placeholders, and end or go on with / after them";
  }
  const url = URL.parse(text.replace(/\{\{[^{}]*\}\}/g, "x"));
  if (url === null) return "is not a URL";
  if (url.username !== "" || url.password !== "")
    return "must not hold credentials: they belong into a connection";
  return url.hash === "" ? undefined : "must not have a fragment: it is never sent";
}

function refusalOf(name: string, seen: ReadonlySet<string>): string | undefined {
  if (SECRET_HEADERS.includes(name)) return "is a secret, and belongs into a connection";
  if (OWN_HEADERS.includes(name)) return "is set by Inlet itself";
  return seen.has(name) ? "stands twice, in other letters" : undefined;
}
