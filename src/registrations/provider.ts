import { redactSent } from "../channels/pull/redact-sent.ts";
import { callAuthorized, endForCallError } from "../channels/pull/source-end.ts";
import type { AuthorizedRequest, CredentialsOf } from "../net/credentials.ts";
import type { Outbound, OutboundRequest, OutboundResponse } from "../net/outbound.ts";
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
  options: { readonly signal: AbortSignal },
) => Promise<StepResult>;

/** Limits of one request, in ms and bytes. */
const LIMITS = { totalTimeoutMs: 30_000, maxBytes: 4 * 1024 * 1024, maxRedirects: 0 } as const;
const NOT_STORED_STATUSES: readonly number[] = [400, 401, 403, 404, 405, 409, 410, 415, 422, 429];

/** Creates a function that sends a request to a provider with the credentials of a connection. */
export function createSendStep({ outbound, credentialsOf, clock }: ProviderDeps): SendStep {
  return async function sendStep(registration, connectionId, request, { signal }) {
    const credentials = connectionId === null ? undefined : credentialsOf(connectionId);
    let sent: AuthorizedRequest | undefined;
    try {
      const response = await callAuthorized({ credentials, request, signal }, (authorized) => {
        sent = authorized;
        return outbound.request(authorized.request, { ...LIMITS, signal });
      });
      const text = response.body.toString();
      const failure = findFailure(registration, response, text, clock());
      if (failure === undefined) return { ok: true, body: parseJson(text), nextUrl: findNextUrl(response) };
      const redact = sent === undefined ? (message: string) => message : redactSent(sent);
      return { ok: false, ...failure, message: redact(failure.message) };
    } catch (error) {
      signal.throwIfAborted();
      const end = endForCallError(error);
      if (!("message" in end)) throw error;
      const code = "code" in end ? end.code : end.kind;
      return { ok: false, code, message: end.message, isRejected: sent === undefined };
    }
  };
}

/** Maximum length in characters of the provider's explanation in a message. */
const EXCERPT = 300;

function findFailure(
  { connection, errors }: Pick<PresetRegistration, "connection" | "errors">,
  response: OutboundResponse,
  text: string,
  nowMs: number,
): StepFailure | undefined {
  const { status } = response;
  const known = errors.find(
    (one) => one.status === status && text.toLowerCase().includes((one.contains ?? "").toLowerCase()),
  );
  const isRejected = NOT_STORED_STATUSES.includes(status);
  const said = text.trim() === "" ? "" : `: ${text.trim().slice(0, EXCERPT)}`;
  if (known !== undefined)
    return { code: CODES[known.means], message: `${known.message} (status ${status})`, isRejected };
  if (status >= 200 && status < 300) return undefined;
  const scopes =
    (connection?.scopes ?? []).length === 0 ? "" : ` Required: ${connection?.scopes.join(", ")}.`;
  const notBeforeMs = notBeforeOf(response, nowMs);
  if (status === 401 || (status === 403 && notBeforeMs === undefined))
    return {
      code: "needsReauth",
      message: `The provider rejected the connection's credentials (status ${status}).${scopes}${said}`,
      isRejected,
    };
  if (status === 404 || status === 410)
    return {
      code: "gone",
      message: `The provider does not know the object, or the credentials may not see it (status ${status}).${scopes}${said}`,
      isRejected,
    };
  return {
    code: status === 429 || status === 403 ? "rate_limited" : `http_${status}`,
    message: `The provider responded with status ${status}${said}`,
    isRejected,
    notBeforeMs,
  };
}

const CODES = { exists: "exists", gone: "gone", quota: "quota", scope: "needsReauth" } as const;

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
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
