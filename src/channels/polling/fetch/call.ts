import { type Backoff, backoffMs } from "../../../lib/backoff.ts";
import { UnavailableError } from "../../../lib/errors.ts";
import {
  type AuthorizedRequest,
  type Credentials,
  NeedsReauthError,
  OriginNotAllowedError,
} from "../../../net/credentials.ts";
import {
  type Outbound,
  OutboundError,
  type OutboundFailure,
  type OutboundRequest,
  type OutboundResponse,
} from "../../../net/outbound.ts";
import { notBeforeOf } from "../../../net/retry-after.ts";
import type { SourceEnd } from "../../source.ts";
import type { PollingSettings } from "../settings/settings-shape.ts";

export interface CallDeps {
  readonly outbound: Pick<Outbound, "request">;
  readonly random: () => number;
  /** Rejects when the signal aborts. */
  readonly wait: (ms: number, options: { readonly signal: AbortSignal }) => Promise<void>;
}

export interface Call {
  readonly request: OutboundRequest;
  readonly settings: PollingSettings;
  readonly credentials: Credentials | undefined;
  readonly signal: AbortSignal;
}

/** `sent`: the request with its credentials, as it went out last; undefined where there was none. */
export type Called =
  | { readonly kind: "answer"; readonly response: OutboundResponse; readonly sent: AuthorizedRequest }
  | { readonly kind: "ended"; readonly end: SourceEnd; readonly sent: AuthorizedRequest | undefined };

/** Failures that may be over a moment later. */
const PASSING_FAILURES: readonly OutboundFailure[] = ["unresolved", "refused", "timeout", "reset"];
const PASSING_STATUSES: readonly number[] = [500, 502, 503, 504];
/** Settings, not luck, decide whether these come again. */
const LASTING_FAILURES: readonly OutboundFailure[] = ["blocked", "redirects"];

/**
 * One call, with its credentials: they are renewed once where the server refuses them. A GET that brings no answer, or one that
 * may be over in a moment, is tried again a few times.
 *
 * @throws the signal's reason; nothing of what the server, the network or the credentials do: that is an end.
 */
export async function callServer(deps: CallDeps, call: Call): Promise<Called> {
  const { outbound, random, wait } = deps;
  const { credentials, request, settings, signal } = call;
  const { attempts, initialMs, maxMs } = settings.retry;
  const backoff: Backoff = { initialMs, maxMs, factor: 2, jitter: 0.5 };
  const limits = limitsOf(settings);
  let isRenewed = false;
  let sent: AuthorizedRequest | undefined;
  const ended = (end: SourceEnd): Called => ({ kind: "ended", end, sent });

  for (let failures = 1; ; ) {
    const mayTryAgain = request.method === "GET" && failures <= attempts;
    try {
      sent = await authorize(call);
      const response = await outbound.request(sent.request, { ...limits, signal });
      const isRefused = response.status === 401 && credentials !== undefined;
      if (isRefused && (isRenewed || !(await credentials.renew(sent, { signal })))) {
        return ended({ kind: "needsReauth", message: REFUSED });
      }
      const isPassing = PASSING_STATUSES.includes(response.status) && !asksToWait(response, settings);
      if (!isRefused && !(isPassing && mayTryAgain)) return { kind: "answer", response, sent };
      isRenewed ||= isRefused;
      if (isRefused) continue;
    } catch (error) {
      signal.throwIfAborted();
      const end = endOf(error);
      if (end === undefined) throw error;
      const isPassing = error instanceof OutboundError && PASSING_FAILURES.includes(error.code);
      if (!isPassing || !mayTryAgain) return ended(end);
    }
    await wait(backoffMs(backoff, failures, random), { signal });
    failures++;
  }
}

const REFUSED = "The server refuses the credentials of the connection (401)";

async function authorize({ credentials, request, signal }: Call): Promise<AuthorizedRequest> {
  if (credentials !== undefined) return credentials.authorize(request, { signal });
  return { request, secretHeaders: [], secretQuery: [], generation: undefined };
}

const limitsOf = ({ maxResponseBytes, redirects, timeouts }: PollingSettings) => ({
  connectTimeoutMs: timeouts.connectMs,
  headTimeoutMs: timeouts.headMs,
  idleTimeoutMs: timeouts.headMs,
  totalTimeoutMs: timeouts.totalMs,
  maxBytes: maxResponseBytes,
  maxRedirects: redirects,
});

/** A try a moment later would be against its wish. */
const asksToWait = (response: OutboundResponse, { retryAfter }: PollingSettings): boolean =>
  retryAfter.honour && notBeforeOf(response, 0) !== undefined;

/** Undefined for what neither the server nor the credentials have done. */
function endOf(error: unknown): SourceEnd | undefined {
  if (error instanceof NeedsReauthError) return { kind: "needsReauth", message: error.message };
  if (error instanceof OriginNotAllowedError) {
    return { kind: "broken", code: "origin", message: OUTSIDE };
  }
  if (error instanceof UnavailableError) {
    return { kind: "failed", code: "unavailable", message: "The credentials cannot be read now" };
  }
  if (!(error instanceof OutboundError)) return undefined;
  const { code, message } = error;
  return { kind: LASTING_FAILURES.includes(code) ? "broken" : "failed", code, message };
}

const OUTSIDE = "The address is outside of the origins that the connection allows";
