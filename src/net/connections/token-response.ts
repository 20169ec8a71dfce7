import { parseJson } from "../../event/parse-json.ts";
import type { Redact } from "../../lib/secrets/redact.ts";
import { OutboundError } from "../outbound.ts";
import { isHeaderText } from "./fields.ts";

export interface Tokens {
  readonly accessToken: string;
  /** Time from which the token must be renewed before use, in ms since 1970. `undefined` if the issuer states no lifetime. */
  readonly renewAtMs: number | undefined;
  readonly refreshToken: string | undefined;
}

/**
 * Result of a token request.
 *
 * - `dead`: the issuer permanently rejects the grant.
 * - `refused`: the issuer rejects the client or the parameters, or the connection cannot use the issued token.
 *
 * `code` is the issuer's error code, and `message` a sentence for users. A rejection has a `refreshToken` if the issuer sent a new one,
 * which then is the only valid one.
 */
export type TokenAnswer =
  | { readonly kind: "tokens"; readonly tokens: Tokens }
  | {
      readonly kind: "dead" | "refused";
      readonly code: string;
      readonly message: string;
      readonly refreshToken?: string | undefined;
    };

/** Thrown when a token request ends without a conclusive response. */
export class TokenRequestError extends OutboundError {
  /** Whether the issuer may have issued tokens that did not arrive. */
  readonly mayHaveIssued: boolean;

  constructor(code: OutboundError["code"], message: string, mayHaveIssued: boolean) {
    super(code, message);
    this.mayHaveIssued = mayHaveIssued;
  }
}

/** Time in ms before its expiry at which a token is renewed. For short lifetimes, a fifth of the lifetime applies instead. */
const RENEW_BEFORE_MS = 60_000;
const MAX_LIFE_SECONDS = 365 * 86_400;
const MAX_DETAIL_CHARS = 200;

/** Error codes for a permanently rejected grant: the standard one (RFC 6749, section 5.2), and those of GitHub and Slack. */
const DEAD_GRANT_ERRORS: readonly string[] = ["invalid_grant", "bad_refresh_token", "invalid_refresh_token"];
/** Error codes of temporary failures. Some issuers send these codes with the HTTP status of a permanent rejection. */
const TRANSIENT_ERRORS: readonly string[] = ["server_error", "slow_down", "temporarily_unavailable"];

/**
 * Reads the response of a token endpoint. It accepts common violations of RFC 6749, section 5.1, because a rejected response could mean
 * the loss of a new refresh token. Examples are any successful status, forms, a missing `token_type`, nulls, numbers as text, and errors
 * with status 200.
 *
 * @param options.tokenTypes token types to accept besides `bearer`
 * @param options.redact removes the secrets of the request from texts of the issuer
 * @throws TokenRequestError if the response is not conclusive
 */
export function readTokenResponse(
  { status, text }: { readonly status: number; readonly text: string },
  options: { readonly nowMs: number; readonly tokenTypes: readonly string[]; readonly redact: Redact },
): TokenAnswer {
  const body = parseBody(text);
  const accessToken = toText(body?.access_token);
  const refreshToken = toText(body?.refresh_token);
  if (body !== undefined && status < 300 && (accessToken ?? refreshToken) !== undefined) {
    const tokenType = toText(body.token_type) ?? "bearer";
    const unusable = findUnusable(accessToken, tokenType, options.tokenTypes);
    if (accessToken === undefined || unusable !== undefined)
      return { kind: "refused", code: "unusable_token", message: unusable ?? NO_TOKEN, refreshToken };
    const renewAtMs = computeRenewAt(options.nowMs, body.expires_in);
    return { kind: "tokens", tokens: { accessToken, refreshToken, renewAtMs } };
  }
  const detail = options.redact(describeFailure(status, body));
  const error = toText(body?.error);
  // A lost refresh token is only possible if the issuer may have processed the request, or if a proxy replaced its response.
  if (error === undefined || isTransient(status, error))
    throw new TokenRequestError("protocol", detail, status < 300 || status >= 500);
  const kind = DEAD_GRANT_ERRORS.includes(error) ? "dead" : "refused";
  const code = /^[\w.-]{1,64}$/.test(error) ? error : "unknown_error";
  const { reason, action } = REJECTIONS[kind];
  return { kind, code, message: `${reason}: ${detail.replace(/\.$/, "")}. ${action}` };
}

const REJECTIONS = {
  dead: {
    reason: "The issuer rejected the grant",
    action: "Authorize the connection again, or set a new refresh token.",
  },
  refused: {
    reason: "The issuer rejected the client or its settings",
    action: "Check the client id, the secret and the endpoints.",
  },
} as const;

const NO_TOKEN = "The issuer's response contains no access token.";

const isTransient = (status: number, error: string): boolean =>
  TRANSIENT_ERRORS.includes(error) || status >= 500 || status === 429;

type Fields = Readonly<Record<string, unknown>>;

/** Parses a JSON object or a form. Returns `undefined` for any other text. */
function parseBody(text: string): Fields | undefined {
  try {
    const value: unknown = parseJson(text);
    return typeof value === "object" && value !== null ? (value as Fields) : undefined;
  } catch {
    const form = new URLSearchParams(text.trim());
    return form.has("access_token") || form.has("error") ? Object.fromEntries(form) : undefined;
  }
}

/** Returns a text without surrounding white space. `undefined` for nulls, empty texts and other values. */
const toText = (value: unknown): string | undefined =>
  (typeof value === "string" && value.trim()) || undefined;

/** Returns why an issued token cannot be used, or `undefined` if it can. */
function findUnusable(
  accessToken: string | undefined,
  tokenType: string,
  tokenTypes: readonly string[],
): string | undefined {
  const accepted = ["bearer", ...tokenTypes.map((type) => type.toLowerCase())];
  if (!accepted.includes(tokenType.toLowerCase()))
    return `The issuer's token has the type ${JSON.stringify(tokenType.slice(0, 64))}, not bearer. If it works as a bearer token, add its type to tokenTypes.`;
  return accessToken === undefined || isHeaderText(accessToken)
    ? undefined
    : "The issuer's access token contains characters that are not allowed in a header.";
}

/** Formats the status, the error and its description, without control characters. */
function describeFailure(status: number, body: Fields | undefined): string {
  const nested = typeof body?.error === "object" && body.error !== null ? (body.error as Fields) : undefined;
  const error = toText(body?.error) ?? toText(nested?.code) ?? toText(nested?.type) ?? toText(nested?.status);
  const description =
    toText(body?.error_description) ??
    toText(nested?.message) ??
    toText(body?.message) ??
    toText(body?.errorSummary);
  const said = [error, description].filter((part) => part !== undefined).join(": ");
  const detail = said.replace(/\p{Cc}+/gu, " ").slice(0, MAX_DETAIL_CHARS);
  return `the token endpoint responded with status ${status} and ${detail || "no OAuth error"}`;
}

function computeRenewAt(nowMs: number, expiresIn: unknown): number | undefined {
  const seconds = Number.parseFloat(String(expiresIn));
  // Some issuers send 0 for tokens that do not expire.
  if (!(seconds > 0)) return undefined;
  const lifeMs = Math.min(seconds, MAX_LIFE_SECONDS) * 1_000;
  return nowMs + lifeMs - Math.min(RENEW_BEFORE_MS, lifeMs / 5);
}
