import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { RateLimiter, RateLimitState } from "../../bus/limits/rate-limiter.ts";
import { upToEntries } from "../../lib/up-to-entries.ts";
import { FairLimiter } from "../../limits/fairness.ts";
import type { Identified, TokenRejection } from "./identify.ts";

export interface FailedTokens {
  /** Returns the last known state of the network's limit, without a request to Redis. */
  readonly stateOf: (network: string) => RateLimitState;
  /** Counts an invalid token against the limit of the client's network. The same token counts only once per minute. */
  readonly note: (network: string, token: string) => Promise<RateLimitState>;
  /**
   * Looks up a token with `identify`. While the network is over its limit, only a few lookups run at a time, round-robin between networks.
   * A recently valid token never waits. Returns `undefined` if too many lookups of the network are already waiting.
   */
  readonly lookUp: (
    network: string,
    token: string,
    identify: () => Promise<Identified | TokenRejection>,
  ) => Promise<Identified | TokenRejection | undefined>;
}

const REMEMBERED_MS = 60_000;
const RIGHT_FOR_MS = 600_000;
const MAX_NETWORKS = 10_000;
const MAX_TOKENS = 50_000;
/** Maximum concurrent lookups for networks over their limit. The other database connections stay free for normal requests. */
const LOOK_UPS_AT_ONCE = 8;
/** Maximum number of waiting lookups per network. Additional lookups are rejected. */
const MAX_WAITING = 256;

/**
 * Limits wrong tokens per network. Many callers may share an address, so a valid token is never rejected because of wrong ones. Over the
 * limit, wrong tokens receive 429 and lookups are throttled. That is enough, because keys are too long to guess.
 *
 * Gateways count together in Redis. A gateway learns that a limit is exhausted when it counts the next wrong token itself.
 */
export function createFailedTokens(limiter: RateLimiter): FailedTokens {
  const states = new LRUCache<string, { readonly state: RateLimitState; readonly endsAtMs: number }>(
    upToEntries(MAX_NETWORKS),
  );
  const counted = new LRUCache<string, true>({ ...upToEntries(MAX_TOKENS), ttl: REMEMBERED_MS });
  const right = new LRUCache<string, true>({ ...upToEntries(MAX_TOKENS), ttl: RIGHT_FOR_MS });
  const lane = new FairLimiter(LOOK_UPS_AT_ONCE);

  function stateOf(network: string): RateLimitState {
    const known = states.get(network);
    const leftMs = (known?.endsAtMs ?? 0) - performance.now();
    if (known === undefined || leftMs <= 0) return limiter.untouched;
    return { ...known.state, resetSeconds: Math.ceil(leftMs / 1_000) };
  }

  return {
    stateOf,
    async note(network, token) {
      const guess = `${network} ${hashToken(token)}`;
      if (counted.has(guess)) return stateOf(network);
      counted.set(guess, true);
      const state = await limiter.take(network);
      states.set(network, { state, endsAtMs: performance.now() + state.resetSeconds * 1_000 });
      return state;
    },
    async lookUp(network, token, identify) {
      if (stateOf(network).allowed) return identify();
      const digest = hashToken(token);
      if (right.has(digest)) return identify();
      if (lane.waitingOf(network) >= MAX_WAITING) return undefined;
      using _place = await lane.acquire(1, { signal: NEVER_ABORTED, owner: network });
      const identified = await identify();
      if (identified.by !== "nobody") right.set(digest, true);
      return identified;
    },
  };
}

const hashToken = (token: string): string => createHash("sha256").update(token).digest("base64");

const NEVER_ABORTED = new AbortController().signal;
