import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Budget, Standing } from "./rate-limiter.ts";

/** How often somebody has guessed wrong. */
export interface FailedTokens {
  /** Where the sender stands, as far as this gateway knows. */
  readonly standingOf: (network: string) => Standing;
  /** Counts a wrong token; the same one again within a minute is no other guess. */
  readonly note: (network: string, token: string) => Promise<Standing>;
}

const REMEMBERED_MS = 60_000;
const MAX_NETWORKS = 10_000;
const MAX_TOKENS = 50_000;

/**
 * Limits how many wrong tokens one sender may try. Who has used up the budget is not listened to until the window ends, not
 * even with a right token: an answer would tell which of the guesses it was. Gateways share the budget, and each
 * of them learns that it is used up by the next wrong token it sees.
 */
export function createFailedTokens(budget: Budget): FailedTokens {
  const standings = new LRUCache<string, { readonly standing: Standing; readonly endsAtMs: number }>({
    max: MAX_NETWORKS,
  });
  const counted = new LRUCache<string, true>({ max: MAX_TOKENS, ttl: REMEMBERED_MS });

  function standingOf(network: string): Standing {
    const known = standings.get(network);
    const leftMs = (known?.endsAtMs ?? 0) - performance.now();
    if (known === undefined || leftMs <= 0) return budget.untouched;
    return { ...known.standing, resetSeconds: Math.ceil(leftMs / 1_000) };
  }

  return {
    standingOf,
    async note(network, token) {
      const guess = `${network} ${createHash("sha256").update(token).digest("base64")}`;
      if (counted.has(guess)) return standingOf(network);
      counted.set(guess, true);
      const standing = await budget.take(network);
      standings.set(network, { standing, endsAtMs: performance.now() + standing.resetSeconds * 1_000 });
      return standing;
    },
  };
}
