import type { Clock } from "../../lib/clock.ts";
import { UnavailableError } from "../../lib/errors.ts";
import { type AuthorizedRequest, NeedsReauthError, OriginNotAllowedError } from "../../net/credentials.ts";
import { type Outbound, OutboundError, type OutboundRequest } from "../../net/outbound.ts";
import { notBeforeOf } from "../../net/retry-after.ts";
import type { SourceEnd, SourceRun } from "../source.ts";
import { isSendable } from "./cursor.ts";
import type { SseSettings } from "./settings.ts";

export interface OpenStreamDeps {
  readonly outbound: Outbound;
  readonly clock: Clock;
}

export interface StreamRequest extends Pick<SourceRun, "credentials"> {
  readonly settings: SseSettings;
  /** The last event id that the server is told; empty for none. */
  readonly resumeId: string;
  readonly signal: AbortSignal;
}

export type Opening =
  | { readonly kind: "open"; readonly body: ReadableStream<Uint8Array> }
  | { readonly kind: "ended"; readonly end: SourceEnd };

/** Which content type is an event stream (WHATWG HTML, "announce the connection"): parameters are of no account. */
const EVENT_STREAM = /^[\t\n\r ]*text\/event-stream[\t\n\r ]*(?:;|$)/i;

/**
 * Asks for the stream, with the credentials of the channel's connection, renewed once where they are refused.
 *
 * @throws nothing of what the server, the network or the credentials do: that is an end.
 */
export async function openStream(
  { outbound, clock }: OpenStreamDeps,
  { credentials, settings, resumeId, signal }: StreamRequest,
): Promise<Opening> {
  if (settings.resume.mode === "lastEventId" && !isSendable(resumeId)) {
    return broken(
      "unsendable_id",
      "The last event id holds what no header can: set the cursor, or resume by the query",
    );
  }
  const fetch = outbound.fetch({
    connectTimeoutMs: settings.connectTimeoutMs,
    headTimeoutMs: settings.connectTimeoutMs,
    idleTimeoutMs: settings.idleTimeoutMs,
    maxRedirects: settings.redirects,
  });
  const request = requestOf(settings, resumeId);

  async function ask(): Promise<{
    readonly response: Response;
    readonly used: AuthorizedRequest | undefined;
  }> {
    const used = await credentials?.authorize(request, { signal });
    const { url, ...init } = used?.request ?? request;
    return { response: await fetch(url, { ...init, signal }), used };
  }

  try {
    let { response, used } = await ask();
    if (response.status === 401 && used !== undefined) {
      await response.body?.cancel();
      if (!(await credentials?.renew(used, { signal })))
        return ended({ kind: "needsReauth", message: REFUSED });
      ({ response, used } = await ask());
    }
    return await read(response, { isAuthorized: used !== undefined, nowMs: clock() });
  } catch (error) {
    return ended(signal.aborted ? { kind: "done" } : endOf(error));
  }
}

const REFUSED = "The server refuses the credentials of the connection (401)";

async function read(
  response: Response,
  { isAuthorized, nowMs }: { readonly isAuthorized: boolean; readonly nowMs: number },
): Promise<Opening> {
  const { body, headers, status } = response;
  const contentType = headers.get("content-type") ?? "";
  if (status === 200 && body !== null && EVENT_STREAM.test(contentType)) return { kind: "open", body };
  await body?.cancel();
  switch (status) {
    case 200:
      return broken(
        "content_type",
        `The server answers with ${named(contentType)}, not with text/event-stream`,
      );
    case 204:
      return ended({ kind: "finished", message: "The server said that there is no more (204)" });
    case 401:
      return isAuthorized
        ? ended({ kind: "needsReauth", message: REFUSED })
        : broken("http_401", "The server wants credentials (401), and the channel has no connection");
    case 410:
      return broken("http_410", "The server said that the stream is gone for good (410)");
    default: {
      // Also 403 and 404: both come while a server is deployed anew, or a right is about to be granted; each try costs little.
      const notBeforeMs = notBeforeOf({ status, headers: Object.fromEntries(headers) }, nowMs);
      const message = `The server answers with the status ${status}`;
      return ended({ kind: "failed", code: `http_${status}`, message, ...(notBeforeMs && { notBeforeMs }) });
    }
  }
}

/** The end after a call, or the credentials for it, have failed. */
function endOf(error: unknown): SourceEnd {
  if (error instanceof NeedsReauthError) return { kind: "needsReauth", message: error.message };
  if (error instanceof OriginNotAllowedError) {
    return { kind: "broken", code: "origin_not_allowed", message: error.message };
  }
  if (error instanceof UnavailableError) {
    return { kind: "failed", code: "unavailable", message: "The credentials cannot be read now" };
  }
  // Its message may quote a header, and so a secret.
  if (error instanceof TypeError) return UNSENDABLE;
  if (!(error instanceof OutboundError)) throw error;
  const { code, message } = error;
  return { kind: code === "blocked" ? "broken" : "failed", code, message };
}

const UNSENDABLE: SourceEnd = {
  kind: "broken",
  code: "invalid_request",
  message: "The settings and the credentials make no valid request",
};

/** Somebody else's text, of which a person needs to see the beginning. */
const named = (contentType: string): string =>
  contentType === "" ? "no content type" : JSON.stringify(contentType.slice(0, 100));

const ended = (end: SourceEnd): Opening => ({ kind: "ended", end });

const broken = (code: string, message: string): Opening => ended({ kind: "broken", code, message });

/** Some servers refuse requests without one. */
const USER_AGENT = "inlet";

/** The request for the stream, without credentials. @param resumeId the last event id; empty for none */
function requestOf(settings: SseSettings, resumeId: string): OutboundRequest {
  const { body, method, query, resume } = settings;
  const url = new URL(settings.url);
  for (const [name, value] of Object.entries(query)) url.searchParams.append(name, value);
  const headers: Record<string, string> = { "user-agent": USER_AGENT, "cache-control": "no-store" };
  if (body !== undefined) headers["content-type"] = "application/json";
  for (const [name, value] of Object.entries(settings.headers)) headers[name.toLowerCase()] = value;
  headers.accept = "text/event-stream";
  if (resumeId !== "" && resume.mode === "lastEventId") headers["last-event-id"] = toByteString(resumeId);
  if (resumeId !== "" && resume.mode === "query" && resume.param)
    url.searchParams.append(resume.param, resumeId);
  return { method, url: url.href, headers, ...(body !== undefined && { body }) };
}

/** Ids are sent in UTF-8 (WHATWG HTML, "server-sent events"); to HTTP each of its bytes is a character. */
const toByteString = (text: string): string => Buffer.from(text).toString("latin1");
