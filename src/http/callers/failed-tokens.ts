import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { RateLimiter, RateLimitState } from "../../bus/limits/rate-limiter.ts";
import { createLimiter } from "../../lib/limiter.ts";
import { upToEntries } from "../../lib/up-to-entries.ts";
import type { Identified, TokenRejection } from "./identify.ts";

/** Counts wrong tokens by sender. */
export interface FailedTokens {
  /** The sender's limit, as far as this gateway knows. */
  readonly stateOf: (network: string) => RateLimitState;
  /** Counts a wrong token; the same one again within a minute is no other guess. */
  readonly note: (network: string, token: string) => Promise<RateLimitState>;
  /**
   * Asks whose a token is. Those of senders over their limit are looked up a few at a time, the senders in turns, but for one that
   * was right a short time ago. Undefined where too many of that sender wait.
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
/** Guesses leave the database to others. */
const LOOK_UPS_AT_ONCE = 8;
/** Of one sender: the others get their turn, however many it has sent. */
const MAX_WAITING = 256;

/**
 * Limits how many wrong tokens one sender may try. Behind one address may be many callers, so a right token is never refused for
 * the wrong ones of others: over the limit wrong ones get 429, and all are looked up through a narrow lane. Keys are too long to be
 * guessed at any pace. Gateways share the limit, and each of them learns that it is used up by the next wrong token it sees.
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
