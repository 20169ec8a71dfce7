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

/** A connection as it is stored now, secrets opened: never to be logged or answered. */
export interface LoadedConnection {
  readonly id: string;
  readonly kind: string;
  readonly settings: Readonly<Record<string, unknown>>;
  readonly allowedOrigins: readonly string[];
  /** Changes with the settings. */
  readonly version: number;
  readonly tokens: {
    /** Counts what was given. */
    readonly generation: number;
    /** Undefined where there is none for the settings of now. */
    readonly accessToken: string | undefined;
    readonly renewAtMs: number | undefined;
    readonly refreshToken: string | undefined;
    readonly refusedAtMs: number | undefined;
  };
}

/** Whose turn it is to ask a connection's issuer, and after which generation. */
export interface Turn {
  readonly connectionId: string;
  readonly generation: number;
  readonly holder: string;
}

/** Shared by all workers. Each call throws UnavailableError when the store is away. */
export interface TokenStore {
  readonly load: (connectionId: string) => Promise<LoadedConnection | undefined>;
  /** False where another has the turn, or something was given since that generation. A turn ends by itself after `leaseMs`. */
  readonly claim: (turn: Turn, leaseMs: number) => Promise<boolean>;
  /** Gives the turn back, to be taken in `restMs`. `isAnswerLost`: the issuer may have given tokens that did not arrive. */
  readonly yieldTurn: (
    turn: Turn,
    options: { readonly restMs: number; readonly isAnswerLost: boolean },
  ) => Promise<void>;
  /** Committed when it resolves; without effect where something was given since the turn began. */
  readonly store: (turn: Turn, tokens: Tokens, connectionVersion: number) => Promise<void>;
  /** True where an answer was lost before, and with it the refresh token that would work. */
  readonly noteRefusal: (
    turn: Turn,
    refusal: { readonly state: "needsReauth" | "error"; readonly code: string },
  ) => Promise<boolean>;
}

export interface RenewerDeps {
  readonly store: TokenStore;
  /** With limits that end a call well within a turn. */
  readonly fetch: Fetch;
  readonly clock: Clock;
  readonly log: Log;
}

/** Renews tokens, one worker at a time for each connection. Disposal waits for those under way. */
export interface Renewer extends AsyncDisposable {
  /**
   * The connection with a token that is newer than that generation, got now or meanwhile by another worker.
   *
   * @throws NeedsReauthError, UnavailableError, OutboundError; the reason of `signal`.
   */
  readonly renew: (
    connectionId: string,
    generation: number,
    options: { readonly signal: AbortSignal },
  ) => Promise<LoadedConnection>;
}

/** Longer than any call for tokens with its discovery may take: who has the turn is through before it passes on. */
const LEASE_MS = 60_000;
/** While others have the turn. */
const LOOK_EVERY_MS = 150;
const MAX_WAIT_MS = 30_000;
/** After a failure that may pass. */
const REST_MS = 1_000;
/** A dead grant is tried no more often. */
const RETRY_DEAD_MS = 60_000;
/** How long a stop waits for tokens that cannot be stored: they are lost for good unless they are. */
const STORE_FOR_MS = 60_000;

/**
 * The turn is a lease in the database, for the call to the issuer takes longer than a row may be locked. What is given is stored
 * by generation and not by lease, so that a holder which was slower than its lease still keeps what only it has: with a refresh
 * token that changes with each use, the new one. It tries to store it for as long as it lives. A holder that dies between the
 * issuer's answer and the store takes the new one with it, as an answer does that breaks on its way; the next holder then tries the
 * old one, which issuers that know this allow for a while, and others call dead: the connection says then that this is why.
 */
export function createRenewer({ store, fetch, clock, log }: RenewerDeps): Renewer {
  const underWay = new Map<string, Promise<LoadedConnection>>();
  let storeUntilMs = Number.POSITIVE_INFINITY;

  async function run(connectionId: string, generation: number): Promise<LoadedConnection> {
    for (let waitedMs = 0; waitedMs < MAX_WAIT_MS; waitedMs += LOOK_EVERY_MS) {
      const connection = await load(connectionId);
      const { tokens } = connection;
      if (tokens.generation > generation && tokens.accessToken !== undefined) return connection;
      if (tokens.refusedAtMs !== undefined && clock() - tokens.refusedAtMs < RETRY_DEAD_MS) throw dead();
      const turn: Turn = { connectionId, generation: tokens.generation, holder: randomUUID() };
      // The tokens may be of no use by then: the settings were changed meanwhile.
      if (await store.claim(turn, LEASE_MS)) await ask(connection, turn);
      else await delay(LOOK_EVERY_MS);
    }
    throw new UnavailableError("another worker is still renewing the connection's token");
  }

  async function load(connectionId: string): Promise<LoadedConnection> {
    const connection = await store.load(connectionId);
    if (!connection) throw new NeedsReauthError("the connection is no longer there");
    return connection;
  }

  async function ask(connection: LoadedConnection, turn: Turn): Promise<void> {
    const settings = oauth2.settings.parse(connection.settings);
    const refreshToken = connection.tokens.refreshToken ?? settings.refreshToken;
    const answer = await requestOrYield(settings, refreshToken, turn);
    if (answer.kind === "tokens") {
      const { tokens } = answer;
      await keep(turn, { ...tokens, refreshToken: tokens.refreshToken ?? refreshToken }, connection.version);
      return;
    }
    const { code } = answer;
    const state = answer.kind === "dead" ? "needsReauth" : "error";
    const facts = { connection: connection.id, code };
    if (await store.noteRefusal(turn, { state, code })) {
      log.error(
        { event: "connection.token_lost", ...facts },
        "issuer refuses the refresh token of a connection after its answer with the next one was lost",
      );
    } else
      log.warn({ event: "connection.token_refused", ...facts }, "issuer refuses the token of a connection");
    throw dead(answer.code);
  }

  async function requestOrYield(settings: OAuth2Settings, refreshToken: string | undefined, turn: Turn) {
    if (settings.grant !== "clientCredentials" && refreshToken === undefined) {
      return { kind: "dead", code: "never_authorized" } as const;
    }
    try {
      return await requestTokens(settings, refreshToken, { fetch, nowMs: clock() });
    } catch (error) {
      const isAnswerLost = refreshToken !== undefined && mayBeLost(error);
      await store.yieldTurn(turn, { restMs: REST_MS, isAnswerLost }).catch(() => {});
      throw error;
    }
  }

  /** Before anyone uses the access token: once it is used, nobody may find the old refresh token. */
  async function keep(turn: Turn, tokens: Tokens, version: number): Promise<void> {
    for (let waitMs = 100; ; waitMs = Math.min(waitMs * 2, 2_000)) {
      try {
        await store.store(turn, tokens, version);
        return;
      } catch (error) {
        if (!(error instanceof UnavailableError) || performance.now() + waitMs > storeUntilMs) {
          log.error(
            { event: "connection.token_lost", err: error, connection: turn.connectionId },
            "new token of a connection cannot be stored and is lost",
          );
          throw error;
        }
      }
      await delay(waitMs);
    }
  }

  function start(connectionId: string, generation: number): Promise<LoadedConnection> {
    const running = run(connectionId, generation).finally(() => underWay.delete(connectionId));
    underWay.set(connectionId, running);
    running.catch(() => {});
    return running;
  }

  return {
    async renew(connectionId, generation, { signal }) {
      for (;;) {
        const running = underWay.get(connectionId) ?? start(connectionId, generation);
        // An abort stops the wait, not the call: its answer may be the only refresh token that works from now on.
        const connection = await unlessAborted(signal, running);
        // The caller that began it may have known less.
        if (connection.tokens.generation > generation) return connection;
      }
    },
    async [Symbol.asyncDispose]() {
      storeUntilMs = performance.now() + STORE_FOR_MS;
      await Promise.allSettled(underWay.values());
    },
  };
}

/** True of failures after which the issuer may have answered. */
const mayBeLost = (error: unknown): boolean =>
  error instanceof OutboundError && ["timeout", "reset", "tooLarge", "protocol"].includes(error.code);

const dead = (code?: string): NeedsReauthError =>
  new NeedsReauthError(`the issuer refuses the connection's grant${code ? ` (${code})` : ""}`);
