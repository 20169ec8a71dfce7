import type { PublicKey } from "./parse-keys.ts";

/**
 * Provides the public keys at a URL, from a cache if possible.
 *
 * @throws UnavailableError if the keys cannot be fetched
 */
export interface KeySource {
  /** Returns the keys at a URL: directly if they are cached, or as a promise if they must be fetched. */
  readonly get: (url: string, nowMs: number) => readonly PublicKey[] | Promise<readonly PublicKey[]>;
  /**
   * Fetches the keys again because none of the cached keys matches. Resolves with `undefined` if they were fetched moments ago.
   *
   * Rejects if the fetch fails, because the sender may have new keys and the request cannot be judged without them.
   */
  readonly renew: (url: string, nowMs: number) => Promise<readonly PublicKey[] | undefined>;
}
