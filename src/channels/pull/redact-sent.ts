import { createRedact, type Redact } from "../../lib/secrets/redact.ts";
import type { AuthorizedRequest } from "../../net/credentials.ts";

/**
 * Returns a function that removes the request's credentials from text. Some servers repeat credentials in their responses, for example in
 * links.
 */
export function redactSent(sent: Omit<AuthorizedRequest, "generation">): Redact {
  const { request, secretHeaders, secretQuery, secretPath } = sent;
  const query = new URL(request.url).searchParams;
  return createRedact([
    ...secretHeaders.flatMap((name) => extractCredentials(request.headers[name] ?? "")),
    ...secretQuery.flatMap((name) => query.getAll(name)),
    ...(secretPath === undefined ? [] : [secretPath.slice(1)]),
  ]);
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
