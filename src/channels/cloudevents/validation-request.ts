import { ApiError } from "../../http/errors.ts";
import type { HookExchange, HookReply } from "../../http/hook-exchange.ts";
import type { Log } from "../../log.ts";
import type { Outbound } from "../../net/outbound.ts";

interface Grant {
  readonly origin: string;
  /** Allowed requests per minute, or `*` for unlimited. */
  readonly rate: string;
}

const MAX_CALLBACKS = 16;
const CALLBACK_TIMEOUT_MS = 10_000;
const MAX_CALLBACK_BYTES = 16 * 1024;

export interface ValidationRequests extends AsyncDisposable {
  /** @throws ApiError 405 when the channel allows no origin, 403 when it does not allow this one */
  readonly answer: (
    exchange: Pick<HookExchange, "headers" | "closed">,
    channel: { readonly allowedOrigins: readonly string[]; readonly requestsPerSecond: number | undefined },
  ) => HookReply;
}

/**
 * Responds to a sender that asks for permission to send (HTTP webhooks for event delivery 1.0.2, section 4). The permission does not
 * authenticate the sender: its deliveries are still verified. If the request names a callback URL, that URL is called once after the
 * response is sent. A failure of that call is only logged.
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
      log.info(
        { event: "cloudevents.callback_made", ...facts, status },
        "called the callback URL of a validation request",
      );
    } catch (err) {
      if (!ending.signal.aborted)
        log.warn(
          { event: "cloudevents.callback_failed", ...facts, err },
          "could not call the callback URL of a validation request",
        );
    }
  }

  return {
    answer(exchange, { allowedOrigins, requestsPerSecond }) {
      if (allowedOrigins.length === 0) throw postOnly("This address only accepts POST.");
      const getRequestHeader = (name: string): string | undefined => {
        const value = exchange.headers[`webhook-request-${name}`];
        return typeof value === "object" ? value.join(", ") : value;
      };
      const origin = getRequestHeader("origin");
      if (origin === undefined)
        throw postOnly("OPTIONS requests must have the header WebHook-Request-Origin.");
      const isAllowed = allowedOrigins.some(
        (one) => one === "*" || one.toLowerCase() === origin.toLowerCase(),
      );
      if (!isAllowed) throw new ApiError("permission_denied", "The channel does not allow this origin.");
      const grant = { origin, rate: computeRate(getRequestHeader("rate"), requestsPerSecond) };
      const callback = parseCallback(getRequestHeader("callback"));
      if (callback !== undefined && calls.size < MAX_CALLBACKS) {
        const call = exchange.closed().then(() => confirm(callback, grant));
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

/** Returns the rate that the sender may use (section 4.2.2): the requested rate, capped at the channel's limit. `*` means unlimited. */
function computeRate(getRequestHeader: string | undefined, requestsPerSecond: number | undefined): string {
  const limit = requestsPerSecond === undefined ? Number.POSITIVE_INFINITY : requestsPerSecond * 60;
  const wanted =
    getRequestHeader !== undefined && /^[1-9]\d{0,8}$/.test(getRequestHeader)
      ? Number(getRequestHeader)
      : Number.POSITIVE_INFINITY;
  const rate = Math.min(limit, wanted);
  return Number.isFinite(rate) ? String(rate) : "*";
}

/**
 * Parses the sender's callback URL. Returns `undefined` for any URL that is not HTTPS, because section 4.1.3 only describes HTTPS
 * callbacks.
 */
function parseCallback(text: string | undefined): URL | undefined {
  const url = text === undefined ? null : URL.parse(text);
  return url?.protocol === "https:" && url.username === "" && url.password === "" ? url : undefined;
}
