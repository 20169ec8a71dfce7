import { StaleSourceError } from "../../bus/errors.ts";
import { BudgetError, UnavailableError } from "../../lib/errors.ts";
import type { Log } from "../../log.ts";
import {
  type AuthorizedRequest,
  type Credentials,
  NeedsReauthError,
  OriginNotAllowedError,
} from "../../net/credentials.ts";
import { OutboundError, type OutboundFailure, type OutboundRequest } from "../../net/outbound.ts";
import type { SourceEnd } from "../source.ts";

export type Failed = Extract<SourceEnd, { kind: "failed" }>;

export const failed = (code: string, message: string, notBeforeMs?: number): Failed => ({
  kind: "failed",
  code,
  message,
  ...(notBeforeMs !== undefined && { notBeforeMs }),
});

/**
 * Creates a failure that is likely to repeat, such as an invalid request. Repeated failures of this kind put the channel in state `error`.
 */
export const rejected = (code: string, message: string): Failed => ({
  ...failed(code, message),
  isRejection: true,
});

export const broken = (code: string, message: string): SourceEnd => ({ kind: "broken", code, message });

export const doneAt = (notBeforeMs: number | undefined): SourceEnd =>
  notBeforeMs === undefined ? { kind: "done" } : { kind: "done", notBeforeMs };

/** Interval between retries while a channel is in state `error` or `needsReauth`. */
export const SLOW_RETRY_MS = 15 * 60_000;

/**
 * Response statuses that mean that the request is invalid. 403 and 404 are excluded, because servers also send them during a deployment or
 * before a permission is granted.
 */
const REJECTION_STATUSES: readonly number[] = [
  400, 401, 405, 406, 410, 411, 413, 414, 415, 422, 431, 501, 505,
];

/** Network failures that are likely to repeat, because they depend on the settings or the host name. */
const PERMANENT_FAILURES: readonly OutboundFailure[] = ["blocked", "redirects"];

/** @param said start of the response's text, or a hint for the user */
export function endForStatus(status: number, notBeforeMs: number | undefined, said = ""): Failed {
  const hint = status === 401 ? ". It requires credentials, but the channel has no connection" : "";
  const message = `The server responded with status ${status}${hint}${said}`;
  const isRejection = REJECTION_STATUSES.includes(status) && notBeforeMs === undefined;
  return isRejection ? rejected(`http_${status}`, message) : failed(`http_${status}`, message, notBeforeMs);
}

/** Minimum wait after the server rejected the credentials, because some servers lock an account after several failed attempts. */
const CREDENTIALS_RETRY_MS = 60_000;

/**
 * Returns the end of a run after a 401 response. It is an ordinary failure, because a server may briefly reject valid credentials after a
 * restart.
 */
export function credentialsRejected(nowMs: number, notBeforeMs: number | undefined): Failed {
  const message = "The server rejected the connection's credentials (401)";
  const soonestMs = Math.max(nowMs + CREDENTIALS_RETRY_MS, notBeforeMs ?? 0);
  return { ...rejected("http_401", message), notBeforeMs: soonestMs, stateIfPersistent: "needsReauth" };
}

/**
 * Returns the end of a run after a request failed or its credentials were unavailable.
 * @throws the error itself if neither the server nor the credentials caused it
 */
export function endForCallError(error: unknown): SourceEnd {
  if (error instanceof NeedsReauthError) return { kind: "needsReauth", message: error.message };
  if (error instanceof OriginNotAllowedError)
    return broken("origin", "The URL's origin is not among the connection's allowed origins");
  if (error instanceof UnavailableError)
    return failed("unavailable", "The credentials are temporarily unavailable");
  if (!(error instanceof OutboundError)) throw error;
  const { code, message } = error;
  return PERMANENT_FAILURES.includes(code) ? rejected(code, message) : failed(code, message);
}

/** Converts a thrown error to the end of a run. Returns `undefined` if the error means that another worker now runs the source. */
export function endForThrownError(error: unknown, log: Log): SourceEnd | undefined {
  if (error instanceof StaleSourceError) return undefined;
  if (error instanceof UnavailableError) {
    log.debug(
      { event: "source.write_failed", err: error },
      "source run ended, because its events could not be written",
    );
    return error instanceof BudgetError
      ? failed(
          error.code,
          `The received events cannot be published, because ${error.message}. ${BUDGET_FIXES[error.code]}`,
        )
      : failed("unavailable", "Redis or the database did not confirm that the received events are stored");
  }
  log.error({ event: "source.failed", err: error }, "source run ended with an unexpected error");
  return failed("internal", "An internal error ended the connection or poll. Inlet will try again.");
}

const BUDGET_FIXES: Readonly<Record<BudgetError["code"], string>> = {
  quarantine_full:
    "Delete or redrive quarantined items. Items older than seven days are deleted automatically",
  topics_full: "Let the readers catch up, delete topics, or raise the limit",
};

export const withoutCredentials = (request: OutboundRequest): AuthorizedRequest => ({
  request,
  secretHeaders: [],
  secretQuery: [],
  generation: undefined,
});

/** Sends a request with credentials. After a 401 response, renews the credentials and sends the request again, but only once. */
export async function callAuthorized<R extends { readonly status: number }>(
  {
    credentials,
    request,
    signal,
  }: {
    readonly credentials: Credentials | undefined;
    readonly request: OutboundRequest;
    readonly signal: AbortSignal;
  },
  send: (authorized: AuthorizedRequest) => Promise<R>,
): Promise<R> {
  if (credentials === undefined) return send(withoutCredentials(request));
  const authorized = await credentials.authorize(request, { signal });
  const response = await send(authorized);
  if (response.status !== 401 || !(await credentials.renew(authorized, { signal }))) return response;
  return send(await credentials.authorize(request, { signal }));
}
