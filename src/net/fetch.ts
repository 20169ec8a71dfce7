import type { Dispatcher } from "undici";
import { startDeadline } from "./deadline.ts";
import { type FollowLimits, follow } from "./follow.ts";
import { OutboundError } from "./outbound.ts";
import { requireCallable } from "./redirects.ts";

/** Statuses whose responses have no body (Fetch standard, "null body status"). */
const NULL_BODY: readonly number[] = [101, 204, 205, 304];

/**
 * A `fetch` (WHATWG) over the dispatcher. Unlike the standard's it throws `OutboundError`, and takes to another origin none but
 * harmless headers; the body errors with the reason of the signal where that aborts.
 */
export function createFetch(
  dispatcher: Dispatcher,
  limits: FollowLimits & { readonly totalTimeoutMs?: number },
): typeof globalThis.fetch {
  const { totalTimeoutMs } = limits;
  return async (input, init) => {
    // First, for the standard's own refusals quote the address with what it must not hold.
    const url = requireCallable(input instanceof Request ? input.url : String(input));
    const request = new Request(input instanceof Request ? input : url, init);
    const caller = callerSignal(input, init) ?? request.signal;
    const signal = totalTimeoutMs === undefined ? caller : startDeadline(caller, totalTimeoutMs).signal;
    const body = request.body === null ? undefined : Buffer.from(await request.arrayBuffer());
    const sent = {
      method: request.method,
      url: request.url,
      headers: Object.fromEntries(request.headers),
      ...(body && { body }),
    };
    const answer = await follow(dispatcher, sent, { limits, redirect: request.redirect, signal });
    const hasBody = request.method !== "HEAD" && !NULL_BODY.includes(answer.status);
    if (!hasBody || answer.status > 599) await answer.body.cancel();
    if (answer.status > 599) throw new OutboundError("protocol", `${answer.status} is no status of HTTP`);
    const response = new Response(hasBody ? answer.body : null, {
      status: answer.status,
      statusText: answer.statusText,
      headers: Object.entries(answer.headers).flatMap(([name, values]) =>
        [values].flat().map((value): [string, string] => [name, value]),
      ),
    });
    return Object.defineProperties(response, {
      url: { value: answer.url },
      redirected: { value: answer.url !== request.url },
    });
  };
}

/**
 * A request's own signal follows the caller's no longer than the request object lives: it is collected while the body of the answer
 * is still coming, and an abort would go nowhere.
 */
const callerSignal = (
  input: Parameters<typeof globalThis.fetch>[0],
  init: Parameters<typeof globalThis.fetch>[1],
): AbortSignal | null | undefined =>
  init?.signal === undefined && input instanceof Request ? input.signal : init?.signal;
