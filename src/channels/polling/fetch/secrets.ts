import type { Values } from "../../../event/values.ts";
import { createRedact, HIDDEN, type Redact } from "../../../lib/secrets/redact.ts";
import type { AuthorizedRequest } from "../../../net/credentials.ts";
import type { DryRun } from "../../source.ts";

/**
 * Takes out what the credentials have put into a request, wherever a server repeats it: links that hold the key of the query,
 * pages that show the request.
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

/** A request as it may be shown. */
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

/** An address without what credentials are to put into it anew: it may be stored. */
export function removeQueryParameters(url: URL | null, names: readonly string[]): string | undefined {
  // Deleting nothing would still spell the query anew.
  for (const name of names) if (url?.searchParams.has(name)) url.searchParams.delete(name);
  return url?.href;
}

/** The value as it was sent, what comes after its scheme (`Bearer …`), and the password of RFC 7617. */
function extractCredentials(value: string): string[] {
  const parameter = value.slice(value.indexOf(" ") + 1);
  if (!/^basic /i.test(value)) return [value, parameter];
  const pair = Buffer.from(parameter, "base64").toString();
  return [value, parameter, pair.slice(pair.indexOf(":") + 1)];
}
