import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { RateLimiter, RateLimitState } from "../../bus/limits/rate-limiter.ts";
import { createLimiter } from "../../lib/limiter.ts";
import { upToEntries } from "../../lib/up-to-entries.ts";
import type { Identified, TokenRejection } from "./identify.ts";

/** Limits wrong tokens per sender. */
export interface FailedTokens {
  /** The sender's limit as known to this gateway. */
  readonly stateOf: (network: string) => RateLimitState;
  /** Counts a wrong token. The same token within a minute counts once. */
  readonly note: (network: string, token: string) => Promise<RateLimitState>;
  /**
   * Looks up a token. For senders over their limit, only a few lookups run at a time, round-robin between senders. A token that was right
   * recently is exempt. Returns `undefined` if too many lookups of that sender are waiting.
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
/** Leaves enough database connections for other requests. */
const LOOK_UPS_AT_ONCE = 8;
/** Maximum waiting lookups per sender. */
const MAX_WAITING = 256;

/**
 * Creates the limit for wrong tokens of one sender. Many callers may share an address, so a right token is never rejected because of
 * others' wrong ones. Over the limit, wrong tokens receive 429 and all lookups share a narrow lane. Keys are too long to guess.
 *
 * Gateways share the limit. Each learns that it is used up with the next wrong token it sees.
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
