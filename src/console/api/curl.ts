import { API_BASE } from "./base.ts";

/** A request to the management API that the page shows as a curl command. */
export interface ShownCall {
  readonly method: string;
  /** Path after `/v1`, with its parameters filled in: `/apps/app_1/channels`. */
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Formats the request as a curl command for a POSIX shell. The API key is a shell variable, so the page never shows it. */
export function formatCurl({ method, path, body, headers = {} }: ShownCall, origin: string): string {
  const words = ["curl -sS"];
  if (method.toUpperCase() !== "GET") words.push(`-X ${method.toUpperCase()}`);
  words.push(shellQuote(`${origin}${API_BASE}${path}`), '-H "Authorization: Bearer $INLET_API_KEY"');
  for (const [name, value] of Object.entries(headers)) words.push(`-H ${shellQuote(`${name}: ${value}`)}`);
  if (body !== undefined) {
    words.push("-H 'Content-Type: application/json'", `-d ${shellQuote(JSON.stringify(body, null, 2))}`);
  }
  return words.join(" \\\n  ");
}

/** Quotes a text for a POSIX shell. Single quotes keep the shell from expanding anything in the text. */
export const shellQuote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Replaces `{appId}` in a path. Each value is encoded as one path segment. */
export const fillPath = (path: string, params: Readonly<Record<string, string>>): string =>
  path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ""));

/**
 * Formats parameters as a query string such as `?a=1&b=2`. Returns an empty string if no parameter is set. An empty text is not set, except
 * for `value`, which then searches for an empty text.
 */
export function formatQuery(params: Readonly<Record<string, string | number | undefined>>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(params))
    if (value !== undefined && (value !== "" || name === "value")) search.set(name, String(value));
  const text = search.toString();
  return text === "" ? "" : `?${text}`;
}
