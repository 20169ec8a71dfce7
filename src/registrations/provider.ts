import { redactSent } from "../channels/pull/redact-sent.ts";
import { callAuthorized, endForCallError } from "../channels/pull/source-end.ts";
import { parseJson } from "../event/parse-json.ts";
import { createRedact } from "../lib/secrets/redact.ts";
import type { AuthorizedRequest, CredentialsOf } from "../net/credentials.ts";
import { nameBlocked } from "../net/name-blocked.ts";
import {
  type Outbound,
  OutboundError,
  type OutboundFailure,
  type OutboundRequest,
  type OutboundResponse,
} from "../net/outbound.ts";
import { notBeforeOf } from "../net/retry-after.ts";
import type { PresetRegistration } from "../verify/preset-registration.ts";

/** A failed request. `code` is stable, and `message` is a sentence for the channel's owner. */
export interface StepFailure {
  readonly code: string;
  readonly message: string;
  /** True if the provider has certainly not changed anything. */
  readonly isRejected: boolean;
  /** Time in ms since 1970 before which the provider does not want another request. */
  readonly notBeforeMs?: number | undefined;
}

export type StepResult =
  | {
      readonly ok: true;
      /** Parsed JSON body. `undefined` if the body is empty or not JSON. */
      readonly body: unknown;
      /** URL of the next page, from the header `Link`. */
      readonly nextUrl: string | undefined;
    }
  | ({ readonly ok: false } & StepFailure);

export interface ProviderDeps {
  readonly outbound: Pick<Outbound, "request">;
  readonly credentialsOf: CredentialsOf;
  readonly clock: () => number;
}

export type SendStep = (
  registration: Pick<PresetRegistration, "connection" | "errors">,
  connectionId: string | null,
  request: OutboundRequest,
  options: {
    readonly signal: AbortSignal;
    /** Secrets in the request, apart from the connection's credentials. Messages do not repeat them, even if the provider does. */
    readonly secrets: readonly string[];
  },
) => Promise<StepResult>;

/** Limits of one request, in ms and bytes. */
const LIMITS = { totalTimeoutMs: 30_000, maxBytes: 4 * 1024 * 1024, maxRedirects: 0 } as const;
const NOT_STORED_STATUSES: readonly number[] = [400, 401, 403, 404, 405, 409, 410, 415, 422, 429];

/** Creates a function that sends a request to a provider with the credentials of a connection. */
export function createSendStep({ outbound, credentialsOf, clock }: ProviderDeps): SendStep {
  return async function sendStep(registration, connectionId, request, { signal, secrets }) {
    const credentials = connectionId === null ? undefined : credentialsOf(connectionId);
    let sent: AuthorizedRequest | undefined;
    try {
      const response = await callAuthorized({ credentials, request, signal }, (authorized) => {
        sent = authorized;
        return nameBlocked("the provider's API, see `baseUrl`", request.url, () =>
          outbound.request(authorized.request, { ...LIMITS, signal }),
        );
      });
      const text = response.body.toString();
      const known = findKnownFailure(registration, response, text);
      if (known !== undefined) return { ok: false, ...known };
      const failure = findFailure(registration, response, clock());
      if (failure === undefined) return { ok: true, body: parseBody(text), nextUrl: findNextUrl(response) };
      return { ok: false, ...failure, message: failure.message + toExcerpt(text, secrets, sent) };
    } catch (error) {
      signal.throwIfAborted();
      const end = endForCallError(error);
      if (!("message" in end)) throw error;
      const code = "code" in end ? end.code : end.kind;
      const isRejected = sent === undefined || isUnsent(error);
      return { ok: false, code, message: toSentence(end.message), isRejected };
    }
  };
}

/** Maximum length in characters of the provider's words in a message, and of the text in which secrets are replaced first. */
const EXCERPT = 300;
const REDACTED = 16_384;

/** Quotes the start of a response. Secrets are replaced before the text is cut, so that no part of one is left. */
function toExcerpt(text: string, secrets: readonly string[], sent: AuthorizedRequest | undefined): string {
  const ofConnection = sent === undefined ? (whole: string) => whole : redactSent(sent);
  const redact = createRedact(secrets, { wholeValues: secrets });
  const words = ofConnection(redact(text.trim().slice(0, REDACTED))).replace(/\s+/g, " ");
  return words === "" ? "" : ` Its response begins with: ${words.slice(0, EXCERPT)}`;
}

/** Returns the meaning that the preset gives to the response. */
function findKnownFailure(
  { errors }: Pick<PresetRegistration, "errors">,
  { status }: OutboundResponse,
  text: string,
): StepFailure | undefined {
  const known = errors.find(
    (one) => one.status === status && text.toLowerCase().includes((one.contains ?? "").toLowerCase()),
  );
  return (
    known && {
      code: CODES[known.means],
      message: `${known.message} (status ${status}).`,
      isRejected: NOT_STORED_STATUSES.includes(status),
    }
  );
}

function findFailure(
  { connection }: Pick<PresetRegistration, "connection">,
  response: OutboundResponse,
  nowMs: number,
): StepFailure | undefined {
  const { status } = response;
  const isRejected = NOT_STORED_STATUSES.includes(status);
  if (status >= 200 && status < 300) return undefined;
  const scopes =
    (connection?.scopes ?? []).length === 0 ? "" : ` Required: ${connection?.scopes.join(", ")}.`;
  const notBeforeMs = notBeforeOf(response, nowMs);
  if (status === 401 || (status === 403 && notBeforeMs === undefined))
    return {
      code: "needsReauth",
      message: `The provider rejected the connection's credentials (status ${status}).${scopes}`,
      isRejected,
    };
  if (status === 404 || status === 410)
    return {
      code: "gone",
      message: `The provider does not know the object, or the credentials may not see it (status ${status}).${scopes}`,
      isRejected,
    };
  return {
    code: status === 429 || status === 403 ? "rate_limited" : `http_${status}`,
    message: `The provider responded with status ${status}.`,
    isRejected,
    notBeforeMs,
  };
}

/** Failures before a connection exists, so that the provider received nothing. */
const UNSENT: readonly OutboundFailure[] = ["blocked", "unresolved"];

/** Messages of errors begin in lower case and have no full stop. */
const toSentence = (message: string): string =>
  `${message.charAt(0).toUpperCase()}${message.slice(1)}${message.endsWith(".") ? "" : "."}`;

const isUnsent = (error: unknown): boolean => error instanceof OutboundError && UNSENT.includes(error.code);

const CODES = { exists: "exists", gone: "gone", quota: "quota", scope: "needsReauth" } as const;

function parseBody(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** Returns the URL with `rel="next"` in the header `Link` (RFC 8288). */
function findNextUrl({ headers, url }: OutboundResponse): string | undefined {
  const link = [headers.link ?? []].flat().join(", ");
  const target = /<([^>]+)>\s*;[^,]*\brel="?next"?/.exec(link)?.[1];
  return target === undefined ? undefined : URL.parse(target, url)?.href;
}
