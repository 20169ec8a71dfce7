import type { Clock } from "../../lib/clock.ts";
import { appendToQuery } from "../../lib/url-query.ts";
import type { Body } from "../../net/body.ts";
import { nameBlocked } from "../../net/name-blocked.ts";
import type { Outbound, OutboundRequest, OutboundStream } from "../../net/outbound.ts";
import { notBeforeOf } from "../../net/retry-after.ts";
import { redactSent } from "../pull/redact-sent.ts";
import {
  broken,
  callAuthorized,
  credentialsRejected,
  endForCallError,
  endForStatus,
  rejected,
} from "../pull/source-end.ts";
import type { SourceEnd, SourceRun } from "../source.ts";
import type { SseConfig } from "./config.ts";
import { isSendable } from "./cursor.ts";
import { readExcerpt } from "./response-excerpt.ts";

export interface OpenStreamDeps {
  readonly outbound: Outbound;
  readonly clock: Clock;
}

/** Matches the content type of an event stream, with any parameters (WHATWG HTML, "announce the connection"). */
const EVENT_STREAM = /^[\t\n\r ]*text\/event-stream[\t\n\r ]*(?:;|$)/i;

/** The server no longer knows the last event id. `end` is how the run ends if the stream must not continue without it. */
export interface ExpiredPosition {
  readonly kind: "expired";
  readonly end: SourceEnd;
}

/**
 * Requests an event stream with the credentials of the channel's connection. Returns the body, or the reason why the run ends without a
 * body. Failures of the server, the network or the credentials are returned, not thrown.
 *
 * @param resumeId last event id to send to the server; empty if none is sent
 */
export async function openStream(
  { outbound, clock }: OpenStreamDeps,
  { credentials, signal }: Pick<SourceRun, "credentials" | "signal">,
  config: SseConfig,
  resumeId: string,
): Promise<Body | SourceEnd | ExpiredPosition> {
  if (config.resume.mode === "lastEventId" && !isSendable(resumeId)) {
    return broken(
      "unsendable_id",
      "The last event id contains characters that are not allowed in a header. Set another cursor, or set `resume.mode` to query",
    );
  }
  const options = {
    connectTimeoutMs: config.connectTimeoutMs,
    headTimeoutMs: config.connectTimeoutMs,
    idleTimeoutMs: config.idleTimeoutMs,
    maxRedirects: config.redirects,
    signal,
  };
  const request = buildRequest(config, resumeId);
  try {
    const response = await callAuthorized({ credentials, request, signal }, async (sent) => {
      const answer = await nameBlocked("`url`", request.url, () => outbound.open(sent.request, options));
      return { ...answer, text: isStream(answer) ? "" : await readExcerpt(answer, redactSent(sent)) };
    });
    const { body, headers, status } = response;
    if (isStream(response)) return body;
    const said = response.text === "" ? "" : `: ${response.text}`;
    if (status === 200) {
      const type = describeContentType(getContentType(response));
      return rejected(
        "content_type",
        `The server responded with ${type} instead of text/event-stream${said}`,
      );
    }
    if (status === 204) return { kind: "finished", message: "The server ended the stream for good (204)" };
    const nowMs = clock();
    const notBeforeMs = notBeforeOf({ status, headers }, nowMs);
    if (resumeId !== "" && config.resume.expiredOn.statuses.includes(status)) {
      const message = `The server no longer knows the last event id (status ${status})${said}`;
      return { kind: "expired", end: broken("position_expired", message) };
    }
    if (status === 401 && credentials !== undefined) return credentialsRejected(nowMs, notBeforeMs);
    const hint = resumeId !== "" && MAYBE_EXPIRED.includes(status) ? EXPIRED_HINT : "";
    return endForStatus(status, notBeforeMs, `${said}${hint}`);
  } catch (error) {
    if (signal.aborted) return { kind: "done" };
    // Does not show the original error message, because it may contain a header with a secret.
    if (error instanceof TypeError)
      return broken("invalid_request", "The settings and credentials do not form a valid request");
    return endForCallError(error);
  }
}

/** Statuses with which servers reject a last event id that they no longer know. */
const MAYBE_EXPIRED: readonly number[] = [400, 404, 409, 410, 412, 416, 422];
const EXPIRED_HINT =
  ". If this means that the server no longer knows the last event id, add the status to `resume.expiredOn.statuses`";

const isStream = (answer: OutboundStream): boolean =>
  answer.status === 200 && EVENT_STREAM.test(getContentType(answer));

/** Returns the content type. Joins repeated headers with a comma, as the Fetch standard requires. */
const getContentType = ({ headers }: OutboundStream): string =>
  [headers["content-type"] ?? ""].flat().join(", ");

/** Limits the quoted text to 100 characters, because the server controls its length. */
const describeContentType = (contentType: string): string =>
  contentType === "" ? "no content type" : JSON.stringify(contentType.slice(0, 100));

/** Some servers reject requests without a `User-Agent` header. */
const USER_AGENT = "inlet";

/**
 * Builds the request for an event stream, without credentials.
 * @param resumeId value for the header `Last-Event-ID`; if empty, the header is omitted
 */
function buildRequest(config: SseConfig, resumeId: string): OutboundRequest {
  const { body, method, query, resume } = config;
  const url = new URL(config.url);
  appendToQuery(url, Object.entries(query));
  const headers: Record<string, string> = { "user-agent": USER_AGENT, "cache-control": "no-store" };
  if (body !== undefined) headers["content-type"] = "application/json";
  for (const [name, value] of Object.entries(config.headers)) headers[name.toLowerCase()] = value;
  headers.accept = "text/event-stream";
  if (resumeId !== "" && resume.mode === "lastEventId") headers["last-event-id"] = toByteString(resumeId);
  if (resumeId !== "" && resume.mode === "query" && resume.param)
    appendToQuery(url, [[resume.param, resumeId]]);
  return { method, url: url.href, headers, ...(body !== undefined && { body }) };
}

/** Converts an event id to a header value in UTF-8, as the WHATWG HTML standard requires. Node expects one Latin-1 character per byte. */
const toByteString = (text: string): string => Buffer.from(text).toString("latin1");
