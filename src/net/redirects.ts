import { OutboundError, type OutboundRequest } from "./outbound.ts";

/** Status codes that count as redirects (Fetch standard, "redirect status"). */
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];

/** Headers to remove when a redirect drops the body of the request (Fetch standard, "request-body-header name"). */
const BODY_HEADERS: readonly string[] = [
  "content-encoding",
  "content-language",
  "content-length",
  "content-location",
  "content-type",
];

/** Headers that redirects may forward to another origin. All other headers might contain credentials. */
export const HARMLESS_HEADERS: readonly string[] = [
  "accept",
  "accept-encoding",
  "accept-language",
  "cache-control",
  "content-type",
  "last-event-id",
  "user-agent",
];

/**
 * Returns the request that follows a redirect, or `undefined` if the response is not a redirect. Method and headers follow the
 * Fetch standard ("HTTP-redirect fetch"). Another origin gets only harmless headers.
 *
 * @throws OutboundError `redirects` if the target is not a callable URL, or if a body would be sent to another origin
 */
export function redirectOf(
  request: OutboundRequest,
  status: number,
  location: string | undefined,
): OutboundRequest | undefined {
  if (!REDIRECTS.includes(status) || location === undefined) return undefined;
  const target = URL.parse(location, request.url);
  if (target === null || !isCallable(target)) {
    throw new OutboundError("redirects", "the server redirects to an invalid URL");
  }
  target.hash = "";
  const next = {
    ...(becomesGet(request.method, status) ? toGetRequest(request) : request),
    url: target.href,
  };
  if (target.origin === new URL(request.url).origin) return next;
  if (next.body !== undefined)
    throw new OutboundError("redirects", "the server redirects a request with a body to another origin");
  return { ...next, headers: pick(next.headers, (name) => HARMLESS_HEADERS.includes(name)) };
}

/** Returns whether calls may go to a URL. URLs with credentials are rejected, because they would appear in logs. */
export const isCallable = (url: URL): boolean =>
  (url.protocol === "https:" || url.protocol === "http:") && url.username === "" && url.password === "";

/**
 * Checks that Inlet may call a URL, and returns the URL without its fragment.
 *
 * @throws OutboundError `blocked` if calls must not go to the URL
 */
export function requireCallable(text: string): string {
  const url = URL.parse(text);
  if (url === null || !isCallable(url)) {
    throw new OutboundError("blocked", "the URL must be http or https and must not contain credentials");
  }
  url.hash = "";
  return url.href;
}

const becomesGet = (method: string, status: number): boolean =>
  status === 303
    ? method !== "GET" && method !== "HEAD"
    : (status === 301 || status === 302) && method === "POST";

const toGetRequest = ({ url, headers }: OutboundRequest): OutboundRequest => ({
  method: "GET",
  url,
  headers: pick(headers, (name) => !BODY_HEADERS.includes(name)),
});

const pick = (headers: OutboundRequest["headers"], keep: (name: string) => boolean): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => keep(name)));
