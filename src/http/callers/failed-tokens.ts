import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { RateLimiter, RateLimitState } from "../../bus/limits/rate-limiter.ts";
import { createLimiter } from "../../lib/limiter.ts";
import { upToEntries } from "../../lib/up-to-entries.ts";
import type { Identified, TokenRejection } from "./identify.ts";

/** Limits how many wrong tokens each sender may send. */
export interface FailedTokens {
  /** Returns the state of the sender's limit, as far as this gateway knows. */
  readonly stateOf: (network: string) => RateLimitState;
  /** Counts a wrong token. If the same token repeats within a minute, it counts once. */
  readonly note: (network: string, token: string) => Promise<RateLimitState>;
  /**
   * Looks up a token. If its sender is over the limit, the lookup may have to wait: only a few such lookups run at a time, round-robin
   * between senders. A token that was right recently does not wait. Returns `undefined` if too many lookups of the sender are waiting.
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
/** Maximum number of concurrent lookups for senders over the limit. It leaves enough database connections for other requests. */
const LOOK_UPS_AT_ONCE = 8;
/** Maximum number of waiting lookups per sender. */
const MAX_WAITING = 256;

/**
 * Creates the limit for wrong tokens of one sender. Many callers may share an address, so a right token is never rejected because of wrong
 * ones. When a sender is over the limit, its wrong tokens receive 429 and its lookups are throttled. That is enough, because keys are too
 * long to guess.
 *
 * All gateways share the limit. Each gateway learns that the limit is used up from the next wrong token that it receives.
 */
export function createFailedTokens(limiter: RateLimiter): FailedTokens {
  const states = new LRUCache<string, { readonly state: RateLimitState; readonly endsAtMs: number }>(
    upToEntries(MAX_NETWORKS),
  );
  const counted = new LRUCache<string, true>({ ...upToEntries(MAX_TOKENS), ttl: REMEMBERED_MS });
  const right = new LRUCache<string, true>({ ...upToEntries(MAX_TOKENS), ttl: RIGHT_FOR_MS });
  const lane = createLimiter(LOOK_UPS_AT_ONCE);
  const waiting = new Map<string, number>();

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
      const before = waiting.get(network) ?? 0;
      if (before >= MAX_WAITING) return undefined;
      waiting.set(network, before + 1);
      try {
        using _place = await lane.acquire(1, { signal: NEVER_ABORTED, whose: network });
        const identified = await identify();
        if (identified.by !== "nobody") right.set(digest, true);
        return identified;
      } finally {
        const left = (waiting.get(network) ?? 1) - 1;
        if (left === 0) waiting.delete(network);
        else waiting.set(network, left);
      }
    },
  };
}

const hashToken = (token: string): string => createHash("sha256").update(token).digest("base64");

const NEVER_ABORTED = new AbortController().signal;
