import type { Dispatcher } from "undici";
import { readWhole, toWebStream } from "./body.ts";
import { startDeadline } from "./deadline.ts";
import { ACCEPT_ENCODING } from "./decode.ts";
import { type FollowLimits, follow } from "./follow.ts";
import { createGuardedAgent, type GuardOptions } from "./guarded-agent.ts";
import { type Outbound, OutboundError } from "./outbound.ts";
import { requireCallable } from "./redirects.ts";

const DEFAULTS = {
  connectTimeoutMs: 10_000,
  headTimeoutMs: 30_000,
  idleTimeoutMs: 30_000,
  maxRedirects: 5,
} as const;
/** Default time limit in ms for a call that reads the complete response. */
const TOTAL_TIMEOUT_MS = 60_000;
const MAX_BYTES = 10 * 1024 * 1024;

/** `User-Agent` header of every request, because some servers reject requests without one. */
const USER_AGENT = "inlet";

/**
 * Creates the HTTP client for calls to other servers. All calls share the address check and a connection pool. Disposal aborts
 * calls in flight.
 */
export function createOutbound(options: GuardOptions): Outbound & AsyncDisposable {
  const agent = createGuardedAgent(options);
  return {
    async request(request, { signal, totalTimeoutMs = TOTAL_TIMEOUT_MS, maxBytes = MAX_BYTES, ...rest }) {
      using deadline = startDeadline(signal, totalTimeoutMs);
      const headers = { "accept-encoding": ACCEPT_ENCODING, "user-agent": USER_AGENT, ...request.headers };
      const answer = await follow(
        agent,
        { ...request, headers },
        { limits: { ...DEFAULTS, ...rest, maxBytes }, redirect: "follow", signal: deadline.signal },
      );
      const { status, url } = answer;
      return { status, headers: answer.headers, url, body: await readWhole(answer.body) };
    },
    async open(request, { signal, ...rest }) {
      const sent = { ...request, headers: Object.fromEntries(new Headers(request.headers)) };
      const limits = { ...DEFAULTS, ...rest };
      const { status, body, ...answer } = await follow(agent, sent, { limits, redirect: "follow", signal });
      return { status, headers: answer.headers, url: answer.url, body };
    },
    fetch: (limits) => createFetch(agent, { ...DEFAULTS, ...limits }),
    [Symbol.asyncDispose]: () => agent.destroy(),
  };
}

/** Status codes of responses without a body (Fetch standard, "null body status"). */
const NULL_BODY: readonly number[] = [101, 204, 205, 304];

/**
 * Creates a `fetch` function. Unlike the WHATWG standard, it throws `OutboundError`, and redirects to another origin keep only harmless
 * headers. If the signal aborts, reading the body fails with the signal's reason.
 */
function createFetch(
  dispatcher: Dispatcher,
  limits: FollowLimits & { readonly totalTimeoutMs?: number },
): typeof globalThis.fetch {
  const { totalTimeoutMs } = limits;
  return async (input, init) => {
    // Check the URL before `Request` parses it, because errors of `Request` would contain credentials from the URL.
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
    if (answer.status > 599)
      throw new OutboundError("protocol", `the server sent the invalid status ${answer.status}`);
    const response = new Response(hasBody ? toWebStream(answer.body) : null, {
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
 * Returns the caller's own signal. `request.signal` stops following it once the `Request` is garbage-collected, which can happen
 * while the response body is still arriving.
 */
const callerSignal = (
  input: Parameters<typeof globalThis.fetch>[0],
  init: Parameters<typeof globalThis.fetch>[1],
): AbortSignal | null | undefined =>
  init?.signal === undefined && input instanceof Request ? input.signal : init?.signal;
