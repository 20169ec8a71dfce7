import type { Dispatcher } from "undici";
import { boundBody, decodeBody } from "./decode.ts";
import { type Exchange, type ExchangeLimits, exchange } from "./exchange.ts";
import { toOutboundError } from "./failures.ts";
import { OutboundError, type OutboundRequest, type OutboundStream } from "./outbound.ts";
import { redirectOf, requireCallable } from "./redirects.ts";

export interface FollowLimits extends ExchangeLimits {
  /** Maximum size of the decoded body, in bytes. */
  readonly maxBytes?: number | undefined;
  readonly maxRedirects: number;
}

/** Status codes of responses that have no body, even if their headers describe one (RFC 9110, section 6.4.1). */
const BODYLESS_STATUSES: readonly number[] = [204, 205, 304];

/**
 * Sends a request, follows redirects, and decodes the body of the last response.
 *
 * @throws OutboundError, or the reason of `signal`
 */
export async function follow(
  dispatcher: Dispatcher,
  request: OutboundRequest,
  { limits, signal }: { readonly limits: FollowLimits; readonly signal: AbortSignal },
): Promise<OutboundStream> {
  let current = { ...request, url: requireCallable(request.url), headers: normalizeHeaders(request.headers) };
  for (let hops = 0; ; hops++) {
    const answer = await exchange(dispatcher, current, { limits, signal });
    try {
      const location = [answer.headers.location].flat()[0];
      const next = redirectOf(current, answer.status, location);
      if (next === undefined) {
        const isEmpty = current.method === "HEAD" || BODYLESS_STATUSES.includes(answer.status);
        return {
          ...answer,
          url: current.url,
          body: isEmpty ? answer.body : decodeAndLimit(answer, limits, signal),
        };
      }
      if (hops >= limits.maxRedirects) {
        const times = limits.maxRedirects === 0 ? "" : ` more than ${limits.maxRedirects} times`;
        throw new OutboundError("redirects", `the server redirects${times}, which this call does not allow`);
      }
      current = next;
    } catch (error) {
      await answer.body.cancel().catch(() => {});
      throw error;
    }
    await answer.body.cancel().catch(() => {});
  }
}

function decodeAndLimit({ headers, body }: Exchange, { maxBytes }: FollowLimits, signal: AbortSignal) {
  const decoded = decodeBody(body, String(headers["content-encoding"] ?? ""));
  if (decoded === body && maxBytes === undefined) return body;
  const explain = (thrown: unknown) => (signal.aborted ? signal.reason : toOutboundError(thrown));
  return boundBody(decoded, maxBytes ?? Number.POSITIVE_INFINITY, explain);
}

/**
 * Converts header names to lower case, so that each name occurs only once. Removes `host`, which could select a different site on
 * the same server.
 */
const normalizeHeaders = (headers: OutboundRequest["headers"]): OutboundRequest["headers"] =>
  Object.fromEntries(
    Object.entries(headers)
      .map(([name, value]) => [name.toLowerCase(), value] as const)
      .filter(([name]) => name !== "host"),
  );
