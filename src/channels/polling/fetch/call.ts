import { type Backoff, backoffMs } from "../../../lib/backoff.ts";
import type { Clock } from "../../../lib/clock.ts";
import type { AuthorizedRequest, Credentials } from "../../../net/credentials.ts";
import { nameBlocked } from "../../../net/name-blocked.ts";
import {
  type Outbound,
  OutboundError,
  type OutboundFailure,
  type OutboundRequest,
  type OutboundResponse,
} from "../../../net/outbound.ts";
import { notBeforeOf } from "../../../net/retry-after.ts";
import {
  callAuthorized,
  credentialsRejected,
  endForCallError,
  endForStatus,
  type Failed,
  withoutCredentials,
} from "../../pull/source-end.ts";
import type { SourceEnd } from "../../source.ts";
import type { PollingConfig } from "../config/config-shape.ts";

export interface CallDeps {
  readonly clock: Clock;
  readonly outbound: Pick<Outbound, "request">;
  readonly random: () => number;
  /** Rejects if the signal aborts first. */
  readonly wait: (ms: number, options: { readonly signal: AbortSignal }) => Promise<void>;
}

export interface Call {
  readonly request: OutboundRequest;
  /** Field of the configuration from which the URL comes, as it is called in messages. */
  readonly urlField: string;
  readonly config: PollingConfig;
  readonly credentials: Credentials | undefined;
  readonly signal: AbortSignal;
}

/** Result of a call. `sent` is the last request that was sent, or the request without credentials if no credentials were available. */
export interface Called {
  readonly answer: OutboundResponse | SourceEnd;
  readonly sent: AuthorizedRequest;
}

/** Network failures that are often temporary, so that an immediate retry is worthwhile. */
const TRANSIENT_FAILURES: readonly OutboundFailure[] = ["unresolved", "refused", "timeout", "reset"];
const TRANSIENT_STATUSES: readonly number[] = [500, 502, 503, 504];

/**
 * Calls the server with the channel's credentials and retries a GET after a temporary failure. Returns failures of the server, the network
 * or the credentials instead of throwing them.
 *
 * @throws the signal's reason
 */
export async function callServer({ outbound, random, wait, clock }: CallDeps, call: Call): Promise<Called> {
  const { credentials, request, urlField, config, signal } = call;
  const { maxResponseBytes, redirects, timeouts } = config;
  const { attempts, initialMs, maxMs } = config.retry;
  const backoff: Backoff = { initialMs, maxMs, factor: 2, jitter: 0.5 };
  const limits = {
    connectTimeoutMs: timeouts.connectMs,
    headTimeoutMs: timeouts.headMs,
    idleTimeoutMs: timeouts.headMs,
    totalTimeoutMs: timeouts.totalMs,
    maxBytes: maxResponseBytes,
    maxRedirects: redirects,
  };
  let sent = withoutCredentials(request);

  for (let failures = 1; ; failures++) {
    const mayTryAgain = request.method === "GET" && failures <= attempts;
    try {
      const response = await callAuthorized(call, (authorized) => {
        sent = authorized;
        return nameBlocked(urlField, request.url, () =>
          outbound.request(authorized.request, { ...limits, signal }),
        );
      });
      if (response.status === 401 && credentials !== undefined) {
        const nowMs = clock();
        return { answer: credentialsRejected(nowMs, findNotBeforeMs(response, config, nowMs)), sent };
      }
      const isPassing = TRANSIENT_STATUSES.includes(response.status) && !requestsWait(response, config);
      if (!isPassing || !mayTryAgain) return { answer: response, sent };
    } catch (error) {
      signal.throwIfAborted();
      const end = endForCallError(error);
      const isPassing = error instanceof OutboundError && TRANSIENT_FAILURES.includes(error.code);
      if (!isPassing || !mayTryAgain) return { answer: end, sent };
    }
    await wait(backoffMs(backoff, failures, random), { signal });
  }
}

/** A retry must not happen immediately if the server asked the client to wait. */
const requestsWait = (response: OutboundResponse, { retryAfter }: PollingConfig): boolean =>
  retryAfter.honour && notBeforeOf(response, 0) !== undefined;

/** Converts a failed response status to the end of the poll. Returns `undefined` if the status means that the response is a page. */
export function findStatusFailure(
  response: OutboundResponse,
  config: PollingConfig,
  nowMs: number,
): Failed | undefined {
  const { status } = response;
  const { statuses } = config.successOn;
  if (statuses === undefined ? status >= 200 && status < 300 : statuses.includes(status)) return undefined;
  return endForStatus(status, findNotBeforeMs(response, config, nowMs));
}

/**
 * Returns the time before which the server does not want another call, in ms since the Unix epoch. Returns `undefined` if the server named
 * no time or the settings ignore it.
 */
export function findNotBeforeMs(
  response: Pick<OutboundResponse, "headers" | "status">,
  { retryAfter }: PollingConfig,
  nowMs: number,
): number | undefined {
  const notBeforeMs = retryAfter.honour ? notBeforeOf(response, nowMs) : undefined;
  return notBeforeMs === undefined ? undefined : Math.min(notBeforeMs, nowMs + retryAfter.maxSeconds * 1000);
}
