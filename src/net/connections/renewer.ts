import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "../../lib/clock.ts";
import { UnavailableError } from "../../lib/errors.ts";
import { unlessAborted } from "../../lib/wait.ts";
import type { Log } from "../../log.ts";
import { NeedsReauthError } from "../credentials.ts";
import { OutboundError } from "../outbound.ts";
import { type OAuth2Settings, oauth2 } from "./oauth2.ts";
import { type Fetch, requestTokens, type Tokens } from "./token-endpoint.ts";

/** A stored connection with decrypted secrets. Never log or return it. */
export interface LoadedConnection {
  readonly id: string;
  readonly kind: string;
  readonly settings: Readonly<Record<string, unknown>>;
  readonly allowedOrigins: readonly string[];
  /** Changes whenever the settings change. */
  readonly version: number;
  readonly tokens: {
    /** Number of tokens received so far. */
    readonly generation: number;
    /** `undefined` if there is no token for the current settings. */
    readonly accessToken: string | undefined;
    readonly renewAtMs: number | undefined;
    readonly refreshToken: string | undefined;
    readonly refusedAtMs: number | undefined;
  };
}

/** The right to request a connection's next token from its issuer, as a lease for one holder. */
export interface Turn {
  readonly connectionId: string;
  readonly generation: number;
  readonly holder: string;
}

/** Token store shared by all workers. Each call throws UnavailableError if the store is unavailable. */
export interface TokenStore {
  readonly load: (connectionId: string) => Promise<LoadedConnection | undefined>;
  /** Returns false if another holder has the turn or a newer token exists. The turn expires after `leaseMs`. */
  readonly claim: (turn: Turn, leaseMs: number) => Promise<boolean>;
  /** Releases the turn; it can be claimed after `restMs`. `isAnswerLost`: the issuer may have sent tokens that did not arrive. */
  readonly yieldTurn: (
    turn: Turn,
    options: { readonly restMs: number; readonly isAnswerLost: boolean },
  ) => Promise<void>;
  /** Resolves when the tokens are committed. Has no effect if a newer token was stored since the turn began. */
  readonly store: (turn: Turn, tokens: Tokens, connectionVersion: number) => Promise<void>;
  /** Records a rejection. Returns true if an earlier response was lost, and with it the valid refresh token. */
  readonly noteRefusal: (
    turn: Turn,
    refusal: { readonly state: "needsReauth" | "error"; readonly code: string },
  ) => Promise<boolean>;
}

export interface RenewerDeps {
  readonly store: TokenStore;
  /** Its timeouts must be well below the duration of a turn. */
  readonly fetch: Fetch;
  readonly clock: Clock;
  readonly log: Log;
}

/** Renews tokens, with one worker at a time per connection. Disposal waits for renewals in flight. */
export interface Renewer extends AsyncDisposable {
  /**
   * Returns the connection with a token newer than `generation`, obtained now or by another worker.
   *
   * @throws NeedsReauthError, UnavailableError, OutboundError, or the reason of `signal`
   */
  readonly renew: (
    connectionId: string,
    generation: number,
    options: { readonly signal: AbortSignal },
  ) => Promise<LoadedConnection>;
}

/** Duration of a turn. It exceeds the time limit of a token request with discovery, so the holder finishes before the turn expires. */
const LEASE_MS = 60_000;
/** Interval of checks while another worker has the turn. */
const CHECK_INTERVAL_MS = 150;
const MAX_WAIT_MS = 30_000;
/** Pause after a temporary failure. */
const RETRY_DELAY_MS = 1_000;
/** Minimum interval between attempts with a rejected grant. */
const RETRY_DEAD_MS = 60_000;
/** Time that a shutdown waits for tokens that cannot be stored, because unstored tokens are lost permanently. */
const STORE_FOR_MS = 60_000;

/**
 * Creates the renewer. The turn is a lease in the database, because a request to the issuer takes longer than a row may be locked.
 *
 * Tokens are stored by generation, not by lease. A holder that exceeds its lease can therefore still store its tokens, including a
 * refresh token that changes with each use. It retries the store until the process ends.
 *
 * If a holder dies before it stores the tokens, or the response is lost, the new refresh token is lost. The next holder tries the old
 * one. Some issuers accept it for a while; others reject it, and the connection then reports the lost response as the cause.
 */
export function createRenewer({ store, fetch, clock, log }: RenewerDeps): Renewer {
  const inFlight = new Map<string, Promise<LoadedConnection>>();
  let storeUntilMs = Number.POSITIVE_INFINITY;

  async function run(connectionId: string, generation: number): Promise<LoadedConnection> {
    for (let waitedMs = 0; waitedMs < MAX_WAIT_MS; waitedMs += CHECK_INTERVAL_MS) {
      const connection = await load(connectionId);
      const { tokens } = connection;
      if (tokens.generation > generation && tokens.accessToken !== undefined) return connection;
      if (tokens.refusedAtMs !== undefined && clock() - tokens.refusedAtMs < RETRY_DEAD_MS)
        throw createGrantError();
      const turn: Turn = { connectionId, generation: tokens.generation, holder: randomUUID() };
      // Loop again after the request, because the settings may have changed and invalidated the new tokens.
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
    const settings = oauth2.settings.parse(connection.settings);
    const refreshToken = connection.tokens.refreshToken ?? settings.refreshToken;
    const answer = await requestOrYield(settings, refreshToken, turn);
    if (answer.kind === "tokens") {
      const { tokens } = answer;
      await storeTokens(
        turn,
        { ...tokens, refreshToken: tokens.refreshToken ?? refreshToken },
        connection.version,
      );
      return;
    }
    const { code } = answer;
    const state = answer.kind === "dead" ? "needsReauth" : "error";
    const facts = { connection: connection.id, code };
    if (await store.noteRefusal(turn, { state, code })) {
      log.error(
        { event: "connection.token_lost", ...facts },
        "the issuer rejects the refresh token of a connection, because the response with the next one was lost",
      );
    } else
      log.warn(
        { event: "connection.token_refused", ...facts },
        "the issuer rejects the token of a connection",
      );
    throw createGrantError(answer.code);
  }

  async function requestOrYield(settings: OAuth2Settings, refreshToken: string | undefined, turn: Turn) {
    if (settings.grant !== "clientCredentials" && refreshToken === undefined) {
      return { kind: "dead", code: "never_authorized" } as const;
    }
    try {
      return await requestTokens(settings, refreshToken, { fetch, nowMs: clock() });
    } catch (error) {
      const isAnswerLost = refreshToken !== undefined && mayHaveLostAnswer(error);
      await store.yieldTurn(turn, { restMs: RETRY_DELAY_MS, isAnswerLost }).catch(() => {});
      throw error;
    }
  }

  /** Stores the tokens before the access token is used, so that no worker uses the old refresh token afterwards. */
  async function storeTokens(turn: Turn, tokens: Tokens, version: number): Promise<void> {
    for (let waitMs = 100; ; waitMs = Math.min(waitMs * 2, 2_000)) {
      try {
        await store.store(turn, tokens, version);
        return;
      } catch (error) {
        if (!(error instanceof UnavailableError) || performance.now() + waitMs > storeUntilMs) {
          log.error(
            { event: "connection.token_lost", err: error, connection: turn.connectionId },
            "the new token of a connection cannot be stored and is lost",
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
        // An abort stops the wait but not the request, whose response may contain the only valid refresh token.
        const connection = await unlessAborted(signal, running);
        // The renewal may have been started for an older generation.
        if (connection.tokens.generation > generation) return connection;
      }
    },
    async [Symbol.asyncDispose]() {
      storeUntilMs = performance.now() + STORE_FOR_MS;
      await Promise.allSettled(inFlight.values());
    },
  };
}

/** Whether the issuer may have processed the request although it failed. */
const mayHaveLostAnswer = (error: unknown): boolean =>
  error instanceof OutboundError && ["timeout", "reset", "tooLarge", "protocol"].includes(error.code);

const createGrantError = (code?: string): NeedsReauthError =>
  new NeedsReauthError(
    `the issuer rejects the connection's grant${code ? ` (${code})` : ""}; authorize the connection again`,
  );
