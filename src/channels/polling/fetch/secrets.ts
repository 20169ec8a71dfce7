import type { Values } from "../../../event/values.ts";
import { HIDDEN, type Redact } from "../../../lib/secrets/redact.ts";
import { appendToQuery, removeFromQuery } from "../../../lib/url-query.ts";
import type { AuthorizedRequest } from "../../../net/credentials.ts";
import { redactSent } from "../../pull/redact-sent.ts";
import type { DryRun } from "../../source.ts";

export function redactValues(values: Values, redact: Redact): Values {
  const redacted = Object.entries(values).map(([name, value]) => [
    name,
    typeof value === "string" ? redact(value) : value.map(redact),
  ]);
  return Object.assign(Object.create(null), Object.fromEntries(redacted));
}

export function redactRequest(sent: Omit<AuthorizedRequest, "generation">): DryRun["request"] {
  const { request, secretHeaders, secretQuery, secretPath } = sent;
  const redact = redactSent(sent);
  const url = new URL(request.url);
  for (const name of secretQuery.filter((each) => url.searchParams.has(each))) {
    removeFromQuery(url, [name]);
    appendToQuery(url, [[name, HIDDEN]]);
  }
  if (secretPath !== undefined) url.pathname = `/${HIDDEN}${url.pathname.slice(secretPath.length)}`;
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

/** Returns the URL without the credentials in its query and path, so that the URL can be stored and they can be added again. */
export function removeCredentials(
  url: URL | null,
  { secretQuery, secretPath }: Pick<AuthorizedRequest, "secretQuery" | "secretPath">,
): string | undefined {
  if (url === null) return undefined;
  removeFromQuery(url, secretQuery);
  if (secretPath !== undefined && url.pathname.startsWith(`${secretPath}/`))
    url.pathname = url.pathname.slice(secretPath.length);
  return url.href;
}
