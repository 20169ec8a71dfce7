import { API_BASE } from "./base.ts";

/** A request of the management API, as it can be shown and copied. */
export interface ShownCall {
  readonly method: string;
  /** Below the version, with its parameters filled in: `/apps/app_1/channels`. */
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The request as a line for a POSIX shell. The key is named and never shown. */
export function curlOf({ method, path, body, headers = {} }: ShownCall, origin: string): string {
  const words = ["curl -sS"];
  if (method.toUpperCase() !== "GET") words.push(`-X ${method.toUpperCase()}`);
  words.push(shellQuote(`${origin}${API_BASE}${path}`), '-H "Authorization: Bearer $INLET_API_KEY"');
  for (const [name, value] of Object.entries(headers)) words.push(`-H ${shellQuote(`${name}: ${value}`)}`);
  if (body !== undefined) {
    words.push("-H 'Content-Type: application/json'", `-d ${shellQuote(JSON.stringify(body, null, 2))}`);
  }
  return words.join(" \\\n  ");
}

/** One word of a POSIX shell, whatever is in it: nothing is expanded between single quotes. */
export const shellQuote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** `/apps/{appId}` with its parameters, each one segment. */
export const fillPath = (path: string, params: Readonly<Record<string, string>>): string =>
  path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ""));

/** `?a=1&b=2` of what is there; empty where nothing is. */
export function queryOf(params: Readonly<Record<string, string | number | undefined>>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(params))
    if (value !== undefined && value !== "") search.set(name, String(value));
  const text = search.toString();
  return text === "" ? "" : `?${text}`;
}
