import { StaleSourceError } from "../../bus/errors.ts";
import { UnavailableError } from "../../lib/errors.ts";
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

/** A failure that looks as if it would last; it may be a mistake of a moment all the same. */
export const refused = (code: string, message: string): Failed => ({
  ...failed(code, message),
  isRejection: true,
});

export const broken = (code: string, message: string): SourceEnd => ({ kind: "broken", code, message });

export const doneAt = (notBeforeMs: number | undefined): SourceEnd =>
  notBeforeMs === undefined ? { kind: "done" } : { kind: "done", notBeforeMs };

/** After an error, or where its channel needs other credentials, a source is tried so seldom. */
export const SLOW_RETRY_MS = 15 * 60_000;

/**
 * Statuses by which a server refuses the request as it is. Not among them are 403 and 404, which come while a server is deployed
 * anew or before a right is granted.
 */
const REJECTION_STATUSES: readonly number[] = [
  400, 401, 405, 406, 410, 411, 413, 414, 415, 422, 431, 501, 505,
];

/** Settings or names, not luck, decide whether these come again. */
const PERMANENT_FAILURES: readonly OutboundFailure[] = ["blocked", "redirects"];

/** The end by an answer that is none of those wanted, for every kind of source. */
export function endForStatus(status: number, notBeforeMs: number | undefined): Failed {
  const hint = status === 401 ? ": it wants credentials, and the channel has no connection" : "";
  const message = `The server answers with the status ${status}${hint}`;
  const isRejection = REJECTION_STATUSES.includes(status) && notBeforeMs === undefined;
  return isRejection ? refused(`http_${status}`, message) : failed(`http_${status}`, message, notBeforeMs);
}

/** Each try may renew a token, and a server may lock an account after some: none comes sooner. */
const CREDENTIALS_RETRY_MS = 60_000;

/**
 * The end by a 401 to a call with credentials. A server that is restored or deployed anew may refuse good ones for a moment; a
 * grant that its issuer calls dead is dead.
 */
export function credentialsRejected(nowMs: number, notBeforeMs: number | undefined): Failed {
  const message = "The server refuses the credentials of the connection (401)";
  const soonestMs = Math.max(nowMs + CREDENTIALS_RETRY_MS, notBeforeMs ?? 0);
  return { ...refused("http_401", message), notBeforeMs: soonestMs, stateIfPersistent: "needsReauth" };
}

/** The end by a call that failed, or whose credentials did. @throws the error where neither the server nor they have done it */
export function endForCallError(error: unknown): SourceEnd {
  if (error instanceof NeedsReauthError) return { kind: "needsReauth", message: error.message };
  if (error instanceof OriginNotAllowedError)
    return broken("origin", "The address is outside of the origins that the connection allows");
  if (error instanceof UnavailableError) return failed("unavailable", "The credentials cannot be read now");
  if (!(error instanceof OutboundError)) throw error;
  const { code, message } = error;
  return PERMANENT_FAILURES.includes(code) ? refused(code, message) : failed(code, message);
}

/** The end of a run that threw; undefined where the source is another's now. */
export function endForThrownError(error: unknown, log: Log): SourceEnd | undefined {
  if (error instanceof StaleSourceError) return undefined;
  if (error instanceof UnavailableError) {
    log.debug({ event: "source.write_failed", err: error }, "run ended by a failed write");
    return failed("unavailable", "What came could not be published.");
  }
  log.error({ event: "source.failed", err: error }, "run ended with an unexpected error");
  return failed("internal", "The run ended with an internal error.");
}

/** A request without credentials. */
export const withoutCredentials = (request: OutboundRequest): AuthorizedRequest => ({
  request,
  secretHeaders: [],
  secretQuery: [],
  generation: undefined,
});

/** A call with its credentials, which are renewed once where the server refuses them (401). */
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
