import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { RateLimiter, RateLimitState } from "../../bus/limits/rate-limiter.ts";

/** Counts wrong tokens by sender. */
export interface FailedTokens {
  /** The sender's limit, as far as this gateway knows. */
  readonly stateOf: (network: string) => RateLimitState;
  /** Counts a wrong token; the same one again within a minute is no other guess. */
  readonly note: (network: string, token: string) => Promise<RateLimitState>;
}

const REMEMBERED_MS = 60_000;
const MAX_NETWORKS = 10_000;
const MAX_TOKENS = 50_000;

/**
 * Limits how many wrong tokens one sender may try. A sender over the limit is refused until the window ends,
 * even with a right token: an answer would tell which of the guesses it was. Gateways share the limit, and each
 * of them learns that it is used up by the next wrong token it sees.
 */
export function createFailedTokens(limiter: RateLimiter): FailedTokens {
  const states = new LRUCache<string, { readonly state: RateLimitState; readonly endsAtMs: number }>({
    max: MAX_NETWORKS,
  });
  const counted = new LRUCache<string, true>({ max: MAX_TOKENS, ttl: REMEMBERED_MS });

  function stateOf(network: string): RateLimitState {
    const known = states.get(network);
    const leftMs = (known?.endsAtMs ?? 0) - performance.now();
    if (known === undefined || leftMs <= 0) return limiter.untouched;
    return { ...known.state, resetSeconds: Math.ceil(leftMs / 1_000) };
  }

  return {
    stateOf,
    async note(network, token) {
      const guess = `${network} ${createHash("sha256").update(token).digest("base64")}`;
      if (counted.has(guess)) return stateOf(network);
      counted.set(guess, true);
      const state = await limiter.take(network);
      states.set(network, { state, endsAtMs: performance.now() + state.resetSeconds * 1_000 });
      return state;
    },
  };
}
