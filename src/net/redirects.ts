import { OutboundError, type OutboundRequest } from "./outbound.ts";

/** Statuses that name another place (Fetch standard, "redirect status"). */
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];

/** Headers of a body that is not sent again (Fetch standard, "request-body-header name"). */
const BODY_HEADERS: readonly string[] = [
  "content-encoding",
  "content-language",
  "content-length",
  "content-location",
  "content-type",
];

/** Headers that another origin may see: they hold no credential. Any other header may, whatever its name. */
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
 * The request that the answer asks for instead, undefined where it is no redirect: method and headers by the Fetch standard
 * ("HTTP-redirect fetch"); to another origin no more than harmless headers go along.
 *
 * @throws OutboundError `redirects` where the target cannot be followed, or a body would go to another origin.
 */
export function redirectOf(
  request: OutboundRequest,
  status: number,
  location: string | undefined,
): OutboundRequest | undefined {
  if (!REDIRECTS.includes(status) || location === undefined) return undefined;
  const target = URL.parse(location, request.url);
  if (target === null || !isCallable(target)) {
    throw new OutboundError("redirects", "it redirects to what is no address of HTTP");
  }
  target.hash = "";
  const next = { ...(becomesGet(request.method, status) ? asGet(request) : request), url: target.href };
  if (target.origin === new URL(request.url).origin) return next;
  if (next.body !== undefined) throw new OutboundError("redirects", "it redirects a body to another origin");
  return { ...next, headers: pick(next.headers, (name) => HARMLESS_HEADERS.includes(name)) };
}

/** True for a URL that may be called at all: HTTP, without credentials, which would end up in logs. */
export const isCallable = (url: URL): boolean =>
  (url.protocol === "https:" || url.protocol === "http:") && url.username === "" && url.password === "";

/** The address without its fragment. @throws OutboundError `blocked` where it may not be called at all */
export function requireCallable(text: string): string {
  const url = URL.parse(text);
  if (url === null || !isCallable(url)) {
    throw new OutboundError("blocked", "only addresses of HTTP without credentials in them are called");
  }
  url.hash = "";
  return url.href;
}

const becomesGet = (method: string, status: number): boolean =>
  status === 303
    ? method !== "GET" && method !== "HEAD"
    : (status === 301 || status === 302) && method === "POST";

const asGet = ({ url, headers }: OutboundRequest): OutboundRequest => ({
  method: "GET",
  url,
  headers: pick(headers, (name) => !BODY_HEADERS.includes(name)),
});

const pick = (headers: OutboundRequest["headers"], keep: (name: string) => boolean): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => keep(name)));
