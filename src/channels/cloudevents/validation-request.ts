import type { ServerResponse } from "node:http";
import { ApiError } from "../../http/problem.ts";
import type { Log } from "../../log.ts";
import type { Outbound } from "../../net/outbound.ts";
import type { HookReply, HookRequest } from "../kind.ts";

/** The permission that a sender is given. */
interface Grant {
  readonly origin: string;
  /** Requests a minute. */
  readonly rate: string;
}

const MAX_CALLBACKS = 16;
const CALLBACK_TIMEOUT_MS = 10_000;
const MAX_CALLBACK_BYTES = 16 * 1024;

export interface ValidationRequests extends AsyncDisposable {
  /** @throws ApiError 405 where no origin is allowed, 403 for an origin that the channel does not allow. */
  readonly answer: (
    request: Pick<HookRequest, "incoming" | "outgoing">,
    channel: { readonly allowedOrigins: readonly string[]; readonly requestsPerSecond: number | undefined },
  ) => HookReply;
}

/**
 * Answers a sender that asks whether it may send (HTTP webhooks for event delivery 1.0.2, section 4). It proves nothing about the
 * sender: its deliveries are verified all the same. A callback is called once, after the answer; its result goes to
 * the log alone.
 */
export function createValidationRequests({
  outbound,
  log,
}: {
  readonly outbound: Outbound;
  readonly log: Log;
}): ValidationRequests {
  const ending = new AbortController();
  const calls = new Set<Promise<void>>();

  async function confirm(url: URL, grant: Grant): Promise<void> {
    const facts = { origin: grant.origin, host: url.host };
    const headers = { "webhook-allowed-origin": grant.origin, "webhook-allowed-rate": grant.rate };
    try {
      const { status } = await outbound.request(
        { method: "GET", url: url.href, headers },
        {
          signal: ending.signal,
          totalTimeoutMs: CALLBACK_TIMEOUT_MS,
          maxBytes: MAX_CALLBACK_BYTES,
          maxRedirects: 0,
        },
      );
      log.info({ event: "cloudevents.callback_made", ...facts, status }, "granted by callback");
    } catch (err) {
      if (!ending.signal.aborted)
        log.warn({ event: "cloudevents.callback_failed", ...facts, err }, "callback failed");
    }
  }

  return {
    answer({ incoming, outgoing }, { allowedOrigins, requestsPerSecond }) {
      if (allowedOrigins.length === 0) throw postOnly("This address takes POST.");
      const asked = (name: string): string | undefined => {
        const value = incoming.headers[`webhook-request-${name}`];
        return typeof value === "object" ? value.join(", ") : value;
      };
      const origin = asked("origin");
      if (origin === undefined) throw postOnly("OPTIONS takes the header WebHook-Request-Origin.");
      const isAllowed = allowedOrigins.some(
        (one) => one === "*" || one.toLowerCase() === origin.toLowerCase(),
      );
      if (!isAllowed) throw new ApiError("permission_denied", "The channel does not allow this origin.");
      const grant = { origin, rate: rateOf(asked("rate"), requestsPerSecond) };
      const callback = callbackOf(asked("callback"));
      if (callback !== undefined && calls.size < MAX_CALLBACKS) {
        const call = answered(outgoing).then(() => confirm(callback, grant));
        calls.add(call);
        void call.finally(() => calls.delete(call));
      }
      const headers = {
        allow: ALLOW,
        "webhook-allowed-origin": grant.origin,
        "webhook-allowed-rate": grant.rate,
      };
      return { status: 200, headers };
    },
    async [Symbol.asyncDispose]() {
      ending.abort();
      await Promise.allSettled(calls);
    },
  };
}

const ALLOW = "POST, OPTIONS";

const postOnly = (message: string): ApiError =>
  new ApiError("method_not_allowed", message, { headers: { allow: "POST" } });

/** Section 4.2.2: what was asked for, within what the channel takes; an asterisk where neither names a rate. */
function rateOf(asked: string | undefined, requestsPerSecond: number | undefined): string {
  const limit = requestsPerSecond === undefined ? Number.POSITIVE_INFINITY : requestsPerSecond * 60;
  const wanted =
    asked !== undefined && /^[1-9]\d{0,8}$/.test(asked) ? Number(asked) : Number.POSITIVE_INFINITY;
  const rate = Math.min(limit, wanted);
  return Number.isFinite(rate) ? String(rate) : "*";
}

/** Section 4.1.3 speaks of HTTPS, and nothing else is called. */
function callbackOf(text: string | undefined): URL | undefined {
  const url = text === undefined ? null : URL.parse(text);
  return url?.protocol === "https:" && url.username === "" && url.password === "" ? url : undefined;
}

/** Resolves when the answer has left, or its connection is gone: perhaps before there was anything to answer. */
function answered(outgoing: ServerResponse | undefined): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (outgoing === undefined || outgoing.closed) resolve();
  else outgoing.once("close", resolve);
  return promise;
}
