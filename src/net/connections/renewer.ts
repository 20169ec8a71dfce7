import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "../../lib/clock.ts";
import { UnavailableError } from "../../lib/errors.ts";
import { unlessAborted } from "../../lib/wait.ts";
import type { Log } from "../../log.ts";
import { NeedsReauthError } from "../credentials.ts";
import type { IssuerFetch } from "./issuer.ts";
import { type OAuth2Config, parseOAuth2Config } from "./oauth2.ts";
import { requestTokens } from "./token-endpoint.ts";
import { type TokenAnswer, TokenRequestError, type Tokens } from "./token-response.ts";

/** A stored connection with decrypted secrets. Do not log it or return it to a client. */
export interface LoadedConnection {
  readonly id: string;
  readonly kind: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly allowedOrigins: readonly string[];
  /** Version of the connection's config, which changes with every update of the config. */
  readonly version: number;
  readonly tokens: {
    /** Number of token responses that have been stored for this connection. */
    readonly generation: number;
    /** Current access token. `undefined` if no token was issued for the current config. */
    readonly accessToken: string | undefined;
    readonly renewAtMs: number | undefined;
    readonly refreshToken: string | undefined;
    readonly rejectedAtMs: number | undefined;
  };
}

/** The exclusive right to request the next token of a connection. This right is a lease, so that it expires if its holder dies. */
export interface Turn {
  readonly connectionId: string;
  readonly generation: number;
  readonly holder: string;
}

/** Store for tokens that all workers share. Every method throws UnavailableError if the store is unavailable. */
export interface TokenStore {
  readonly load: (connectionId: string) => Promise<LoadedConnection | undefined>;
  /** Acquires the exclusive right to renew for `leaseMs`. Returns false if another worker has it, or a newer token exists. */
  readonly claim: (turn: Turn, leaseMs: number) => Promise<boolean>;
  /**
   * Releases the right to renew, which workers can claim again after `restMs`. `isAnswerLost` records that the issuer may have sent
   * tokens that never arrived.
   */
  readonly yieldTurn: (
    turn: Turn,
    options: { readonly restMs: number; readonly isAnswerLost: boolean },
  ) => Promise<void>;
  /**
   * Stores tokens, and resolves when they are committed. Has no effect if another worker has stored a newer token since the claim. Without
   * an access token, `turn.holder` keeps its claim, now for the next generation.
   */
  readonly store: (turn: Turn, tokens: NewTokens, connectionVersion: number) => Promise<void>;
  /**
   * Records that the issuer rejected the grant. Returns true if a lost earlier response may have contained the valid refresh token.
   */
  readonly recordRejection: (
    turn: Turn,
    refusal: { readonly state: "needsReauth" | "error"; readonly code: string; readonly message: string },
  ) => Promise<boolean>;
}

/** Tokens to store. The access token is missing if the connection cannot use it. */
export type NewTokens = Omit<Tokens, "accessToken"> & Partial<Pick<Tokens, "accessToken">>;

export interface RenewerDeps {
  readonly store: TokenStore;
  /** Sends requests to the issuer. The timeouts must be well below `LEASE_MS`, so that a request ends before the lease expires. */
  readonly fetch: IssuerFetch;
  readonly clock: Clock;
  readonly log: Log;
}

/** Renews access tokens. Only one worker at a time renews the token of a connection, and disposal waits for renewals in flight. */
export interface Renewer extends AsyncDisposable {
  /**
   * Returns the connection with a token that is newer than `generation`, whichever worker renewed it.
   *
   * @throws NeedsReauthError, UnavailableError, OutboundError, or the reason of `signal`
   */
  readonly renew: (
    connectionId: string,
    generation: number,
    options: { readonly signal: AbortSignal },
  ) => Promise<LoadedConnection>;
}

/** Duration in ms of a worker's exclusive right to renew. It exceeds the time limits of discovery and token request together. */
const LEASE_MS = 60_000;
/** Interval in ms at which a worker checks for a new token while another worker renews it. */
const CHECK_INTERVAL_MS = 150;
const MAX_WAIT_MS = 30_000;
/** Minimum time in ms between two token requests after a temporary failure. */
const RETRY_DELAY_MS = 1_000;
/** Minimum time in ms between two token requests after the issuer has rejected the grant. */
const RETRY_DEAD_MS = 60_000;
/** Maximum time in ms for which a shutdown keeps trying to store new tokens. Tokens that are not stored by then are lost. */
const STORE_FOR_MS = 60_000;

/**
 * Creates the renewer.
 *
 * A turn is a lease in the database, because a request to the issuer takes longer than a row may be locked. Tokens are stored by
 * generation, not by lease, so a holder can store its tokens even after its lease has expired. This matters for refresh tokens
 * that change with each use. The holder keeps trying to store the tokens until the process ends.
 *
 * The new refresh token is lost if the response is lost, or if the holder dies before it stores the tokens. The next holder then
 * tries the old refresh token. Some issuers accept it for a while. Others reject it, and the connection then reports the lost
 * response as the cause.
 */
export function createRenewer({ store, fetch, clock, log }: RenewerDeps): Renewer {
  const inFlight = new Map<string, Promise<LoadedConnection>>();
  let storeUntilMs = Number.POSITIVE_INFINITY;

  async function run(connectionId: string, generation: number): Promise<LoadedConnection> {
    for (let waitedMs = 0; waitedMs < MAX_WAIT_MS; waitedMs += CHECK_INTERVAL_MS) {
      const connection = await load(connectionId);
      const { tokens } = connection;
      if (tokens.generation > generation && tokens.accessToken !== undefined) return connection;
      if (tokens.rejectedAtMs !== undefined && clock() - tokens.rejectedAtMs < RETRY_DEAD_MS)
        throw new NeedsReauthError(
          "the issuer rejected the connection's grant or settings less than a minute ago",
        );
      const turn: Turn = { connectionId, generation: tokens.generation, holder: randomUUID() };
      // Check the config again after the request. If the config has changed in the meantime, the new tokens are invalid.
      if (await store.claim(turn, LEASE_MS)) await requestAndStore(connection, turn);
      else await delay(CHECK_INTERVAL_MS);
    }
    throw new UnavailableError("another worker is still renewing the connection's token");
  }

  async function load(connectionId: string): Promise<LoadedConnection> {
    const connection = await store.load(connectionId);
    if (!connection) throw new NeedsReauthError("the connection no longer exists");
    return connection;
  }

  async function requestAndStore(connection: LoadedConnection, turn: Turn): Promise<void> {
    const config = parseOAuth2Config(connection.config);
    const refreshToken = connection.tokens.refreshToken ?? config.refreshToken;
    const answer = await requestOrYield(config, refreshToken, turn);
    if (answer.kind === "tokens") {
      const { tokens } = answer;
      const next = tokens.refreshToken ?? refreshToken;
      await storeTokens(turn, { ...tokens, refreshToken: next }, connection.version);
    } else {
      await recordRejection(connection, turn, answer);
    }
  }

  async function recordRejection(
    { version }: LoadedConnection,
    turn: Turn,
    { kind, code, message, refreshToken }: Exclude<TokenAnswer, { kind: "tokens" }>,
  ): Promise<never> {
    let { generation } = turn;
    if (refreshToken !== undefined) {
      await storeTokens(turn, { renewAtMs: undefined, refreshToken }, version);
      generation++;
    }
    const state = kind === "dead" ? "needsReauth" : "error";
    const facts = { connection: turn.connectionId, code, reason: message };
    if (await store.recordRejection({ ...turn, generation }, { state, code, message })) {
      log.error(
        { event: "connection.token_lost", ...facts },
        "the issuer rejects a refresh token; the response that may have contained the next refresh token was lost",
      );
    } else
      log.warn(
        { event: "connection.token_refused", ...facts },
        "the issuer rejects the token of a connection",
      );
    throw new NeedsReauthError(message);
  }

  async function requestOrYield(config: OAuth2Config, refreshToken: string | undefined, turn: Turn) {
    if (config.grant !== "clientCredentials" && refreshToken === undefined) {
      return { kind: "dead", code: "never_authorized", message: NEVER_AUTHORIZED } as const;
    }
    try {
      return await requestTokens(config, refreshToken, { fetch, nowMs: clock() });
    } catch (error) {
      const isAnswerLost =
        refreshToken !== undefined && error instanceof TokenRequestError && error.mayHaveIssued;
      await store.yieldTurn(turn, { restMs: RETRY_DELAY_MS, isAnswerLost }).catch(() => {});
      throw error;
    }
  }

  /** Store the tokens before using the access token. Otherwise, another worker could send the old refresh token again. */
  async function storeTokens(turn: Turn, tokens: NewTokens, version: number): Promise<void> {
    for (let waitMs = 100; ; waitMs = Math.min(waitMs * 2, 2_000)) {
      try {
        await store.store(turn, tokens, version);
        return;
      } catch (error) {
        if (!(error instanceof UnavailableError) || performance.now() + waitMs > storeUntilMs) {
          log.error(
            { event: "connection.token_lost", err: error, connection: turn.connectionId },
            "a new token of a connection could not be stored and is lost; authorize the connection again",
          );
          throw error;
        }
      }
      await delay(waitMs);
    }
  }

  function start(connectionId: string, generation: number): Promise<LoadedConnection> {
    const running = run(connectionId, generation).finally(() => inFlight.delete(connectionId));
    inFlight.set(connectionId, running);
    running.catch(() => {});
    return running;
  }

  return {
    async renew(connectionId, generation, { signal }) {
      for (;;) {
        const running = inFlight.get(connectionId) ?? start(connectionId, generation);
        // Aborting ends only the wait. The token request continues, because its response may contain the only valid refresh token.
        const connection = await unlessAborted(signal, running);
        // Renew again if the renewal in flight yielded no newer token than the caller already has.
        if (connection.tokens.generation > generation) return connection;
      }
    },
    async [Symbol.asyncDispose]() {
      storeUntilMs = performance.now() + STORE_FOR_MS;
      await Promise.allSettled(inFlight.values());
    },
  };
}

const NEVER_AUTHORIZED = "The connection was never authorized. Authorize it, or set a refresh token.";
