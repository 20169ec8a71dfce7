import { randomBytes } from "node:crypto";
import { recordAudit } from "../../../data/accounts/audit.ts";
import {
  insertAuthorization,
  type PendingAuthorization,
  takeAuthorization,
} from "../../../data/connections/connection-authorizations.ts";
import { forgetTokens, storeTokens } from "../../../data/connections/connection-tokens.ts";
import { findConnection, openConnectionSecrets } from "../../../data/connections/connections.ts";
import type { Caller } from "../../../http/context.ts";
import { conflict } from "../../../http/errors.ts";
import { formatTimestamp } from "../../../lib/clock.ts";
import type { Log } from "../../../log.ts";
import { authorizationRequest, finishAuthorization } from "../../../net/connections/authorization.ts";
import type { IssuerFetch } from "../../../net/connections/issuer.ts";
import { type OAuth2Config, oauth2, parseOAuth2Config } from "../../../net/connections/oauth2.ts";
import type { NewTokens } from "../../../net/connections/renewer.ts";
import { OutboundError } from "../../../net/outbound.ts";
import { CONNECTIONS, getRow } from "../../kit/references.ts";
import type { ConnectionStoreDeps } from "./queries.ts";

export interface AuthorizeDeps extends ConnectionStoreDeps {
  readonly issuerFetch: IssuerFetch;
  readonly log: Log;
  /** Public base URL of the API, without a path such as `CALLBACK_PATH`. */
  readonly baseUrl: string;
}

/** Path below `baseUrl` to which the OAuth issuer redirects the user after an authorization. */
export const CALLBACK_PATH = "/connections/oauth/callback";

const STATE_LIFETIME_MS = 600_000;
const STATE_BYTES = 32;
const STATE = /^[A-Za-z0-9_-]{43}$/;

/**
 * Starts an OAuth authorization.
 * @throws ApiError 404 for an unknown connection; 409 if the grant is not `authorizationCode` or the issuer's endpoints are unknown
 */
export async function beginAuthorization(
  deps: AuthorizeDeps,
  caller: Caller,
  id: string,
): Promise<{ readonly url: string; readonly expiresAt: string }> {
  const { db, keyring, clock, issuerFetch, baseUrl } = deps;
  const row = await getRow(db, caller, CONNECTIONS, id);
  const config = openOAuth2Config(deps, row);
  if (config?.grant !== "authorizationCode") {
    throw conflict("The connection's `config.grant` must be `authorizationCode`.");
  }
  const state = randomBytes(STATE_BYTES).toString("base64url");
  const redirectUri = baseUrl + CALLBACK_PATH;
  const { url, verifier } = await authorizationRequest(config, { state, redirectUri }, issuerFetch).catch(
    (error: unknown) => {
      if (error instanceof OutboundError) throw conflict(`The authorization cannot start: ${error.message}.`);
      throw error;
    },
  );
  const nowMs = clock();
  const pending = { connectionId: id, connectionVersion: row.version, redirectUri, verifier, author: caller };
  await db
    .transaction()
    .execute((trx) =>
      insertAuthorization(trx, keyring, state, pending, { nowMs, lifeMs: STATE_LIFETIME_MS }),
    );
  return { url, expiresAt: formatTimestamp(nowMs + STATE_LIFETIME_MS) };
}

/** Outcome of an OAuth callback. The callback page shows a different text for each outcome. */
export type AuthorizationResult =
  | "authorized"
  | "unknown"
  | "denied"
  | "strange"
  | "issuerNeeded"
  | "refused"
  | "unusable"
  | "unreachable";

/** Processes the callback of an OAuth issuer. Each `state` works only once, even if its callback fails. @throws UnavailableError */
export async function completeAuthorization(
  deps: AuthorizeDeps,
  parameters: URLSearchParams,
): Promise<AuthorizationResult> {
  const { db, keyring, clock, issuerFetch, log } = deps;
  const state = parameters.get("state") ?? "";
  const pending = STATE.test(state) ? await takeAuthorization(db, keyring, state, clock()) : undefined;
  const row = pending && (await findConnection(db, pending.author.organizationId, pending.connectionId));
  const config = row && openOAuth2Config(deps, row);
  if (!pending || !config) return "unknown";
  const { connectionId, redirectUri, verifier } = pending;
  function logFailure(code: string, reason: string): void {
    log.warn(
      { event: "connection.authorization_failed", connection: connectionId, code, reason },
      "the tokens of an authorized connection could not be obtained",
    );
  }
  try {
    const call = { fetch: issuerFetch, nowMs: clock() };
    const answer = await finishAuthorization(config, { parameters, state, redirectUri, verifier }, call);
    if (answer.kind === "tokens")
      return (await storeGrant(deps, pending, answer.tokens)) ? "authorized" : "unknown";
    if (!("code" in answer)) return answer.kind;
    const { code, message, refreshToken } = answer;
    logFailure(code, message);
    if (refreshToken === undefined) return "refused";
    return (await storeGrant(deps, pending, { refreshToken, renewAtMs: undefined })) ? "unusable" : "unknown";
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    logFailure(error.code, error.message);
    return "unreachable";
  }
}

/** Replaces the connection's tokens. Returns false if the connection was changed after the authorization began. */
async function storeGrant(
  { db, keyring, clock }: AuthorizeDeps,
  { connectionId, connectionVersion, author }: PendingAuthorization,
  tokens: NewTokens,
): Promise<boolean> {
  const nowMs = clock();
  return db.transaction().execute(async (trx) => {
    const connection = await trx
      .selectFrom("connections")
      .select("id")
      .where("id", "=", connectionId)
      .where("version", "=", connectionVersion)
      .forUpdate()
      .executeTakeFirst();
    if (!connection) return false;
    const generation = await forgetTokens(trx, connectionId);
    await storeTokens(trx, keyring, { connectionId, generation }, tokens, { connectionVersion, nowMs });
    await recordAudit(trx, author, { action: "authorize", entity: "connection", id: connectionId }, nowMs);
    return true;
  });
}

function openOAuth2Config(
  { keyring }: AuthorizeDeps,
  row: Parameters<typeof openConnectionSecrets>[1] & { readonly kind: string; readonly config: object },
): OAuth2Config | undefined {
  if (row.kind !== oauth2.kind) return undefined;
  return parseOAuth2Config({ ...row.config, ...openConnectionSecrets(keyring, row) });
}
