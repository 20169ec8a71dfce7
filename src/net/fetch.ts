import type { Dispatcher } from "undici";
import { startDeadline } from "./deadline.ts";
import { type FollowLimits, follow } from "./follow.ts";
import { OutboundError } from "./outbound.ts";

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
    const request = new Request(input, init);
    const signal =
      totalTimeoutMs === undefined ? request.signal : startDeadline(request.signal, totalTimeoutMs).signal;
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
