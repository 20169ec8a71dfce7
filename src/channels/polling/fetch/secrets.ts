import type { Values } from "../../../event/values.ts";
import { createRedact, HIDDEN, type Redact } from "../../../lib/secrets/redact.ts";
import type { AuthorizedRequest } from "../../../net/credentials.ts";
import type { DryRun } from "../../source.ts";

/**
 * Returns a function that removes the request's credentials from text. Some servers repeat credentials in their responses, for example in
 * links.
 */
export function redactSent(sent: Omit<AuthorizedRequest, "generation">): Redact {
  const { request, secretHeaders, secretQuery } = sent;
  const query = new URL(request.url).searchParams;
  return createRedact([
    ...secretHeaders.flatMap((name) => extractCredentials(request.headers[name] ?? "")),
    ...secretQuery.flatMap((name) => query.getAll(name)),
  ]);
}

export function redactValues(values: Values, redact: Redact): Values {
  const redacted = Object.entries(values).map(([name, value]) => [
    name,
    typeof value === "string" ? redact(value) : value.map(redact),
  ]);
  return Object.assign(Object.create(null), Object.fromEntries(redacted));
}

export function redactRequest(sent: Omit<AuthorizedRequest, "generation">): DryRun["request"] {
  const { request, secretHeaders, secretQuery } = sent;
  const redact = redactSent(sent);
  const url = new URL(request.url);
  for (const name of secretQuery) if (url.searchParams.has(name)) url.searchParams.set(name, HIDDEN);
  const headers = Object.entries(request.headers).map(([name, value]): [string, string] => [
    name,
    secretHeaders.includes(name) ? HIDDEN : redact(value),
  ]);
  return {
    method: request.method,
    url: url.href,
    headers: Object.fromEntries(headers),
    body: request.body === undefined ? null : redact(request.body.toString()),
  };
}

/** Returns the URL without the query parameters that contain credentials, so that the URL can be stored. */
export function removeQueryParameters(url: URL | null, names: readonly string[]): string | undefined {
  // Skips missing parameters, because deleting a missing parameter would still re-encode the whole query.
  for (const name of names) if (url?.searchParams.has(name)) url.searchParams.delete(name);
  return url?.href;
}

/**
 * Returns the secret parts of a header value: the whole value, the part after a scheme such as `Bearer`, and a Basic password (RFC 7617).
 */
function extractCredentials(value: string): string[] {
  const parameter = value.slice(value.indexOf(" ") + 1);
  if (!/^basic /i.test(value)) return [value, parameter];
  const pair = Buffer.from(parameter, "base64").toString();
  return [value, parameter, pair.slice(pair.indexOf(":") + 1)];
}
