import type { Dispatcher } from "undici";
import { boundBody, decodeBody } from "./decode.ts";
import { type Exchange, type ExchangeLimits, exchange } from "./exchange.ts";
import { toOutboundError } from "./failures.ts";
import { OutboundError, type OutboundRequest } from "./outbound.ts";
import { redirectOf, requireCallable } from "./redirects.ts";

export interface FollowLimits extends ExchangeLimits {
  /** Of the body once it is decoded. */
  readonly maxBytes?: number | undefined;
  readonly maxRedirects: number;
}

export interface FollowOptions {
  readonly limits: FollowLimits;
  /** As the Fetch standard has it: `manual` takes a redirect for the answer, `error` refuses it. */
  readonly redirect: "follow" | "manual" | "error";
  readonly signal: AbortSignal;
}

/** The last answer, its body decoded. */
export interface Followed extends Exchange {
  readonly url: string;
}

/** Answers that have no body, whatever their headers say (RFC 9110, section 6.4.1). */
const EMPTY: readonly number[] = [204, 205, 304];

/**
 * One call with its redirects.
 *
 * @throws OutboundError, or the reason of `signal`.
 */
export async function follow(
  dispatcher: Dispatcher,
  request: OutboundRequest,
  { limits, redirect, signal }: FollowOptions,
): Promise<Followed> {
  let current = { ...request, url: requireCallable(request.url), headers: ownHeaders(request.headers) };
  for (let hops = 0; ; hops++) {
    const answer = await exchange(dispatcher, current, { limits, signal });
    try {
      const location = [answer.headers.location].flat()[0];
      const next = redirect === "manual" ? undefined : redirectOf(current, answer.status, location);
      if (next === undefined) {
        const isEmpty = current.method === "HEAD" || EMPTY.includes(answer.status);
        return {
          ...answer,
          url: current.url,
          body: isEmpty ? answer.body : readable(answer, limits, signal),
        };
      }
      if (redirect === "error") throw new OutboundError("redirects", "it redirects");
      if (hops >= limits.maxRedirects) {
        throw new OutboundError("redirects", `it redirects more than ${limits.maxRedirects} times`);
      }
      current = next;
    } catch (error) {
      await answer.body.cancel().catch(() => {});
      throw error;
    }
    await answer.body.cancel().catch(() => {});
  }
}

function readable({ headers, body }: Exchange, { maxBytes }: FollowLimits, signal: AbortSignal) {
  const decoded = decodeBody(body, String(headers["content-encoding"] ?? ""));
  if (decoded === body && maxBytes === undefined) return body;
  const explain = (thrown: unknown) => (signal.aborted ? signal.reason : toOutboundError(thrown));
  return boundBody(decoded, maxBytes ?? Number.POSITIVE_INFINITY, explain);
}

/**
 * Names in lower case, so that each stands once. The address alone says whom the request is for: another `host` would reach another
 * site of the same server.
 */
const ownHeaders = (headers: OutboundRequest["headers"]): OutboundRequest["headers"] =>
  Object.fromEntries(
    Object.entries(headers)
      .map(([name, value]) => [name.toLowerCase(), value] as const)
      .filter(([name]) => name !== "host"),
  );
