import type { PublicKey } from "./parse-keys.ts";

/**
 * A source of public keys by URL, with a cache.
 *
 * @throws UnavailableError if keys cannot be fetched
 */
export interface KeySource {
  /** Returns the cached keys synchronously, or a promise if they must be fetched. */
  readonly get: (url: string, nowMs: number) => readonly PublicKey[] | Promise<readonly PublicKey[]>;
  /**
   * Fetches the keys again because the cached ones did not match; resolves to `undefined` if they were fetched moments ago. Rejects if
   * the fetch fails, because the sender may have new keys.
   */
  readonly renew: (url: string, nowMs: number) => Promise<readonly PublicKey[] | undefined>;
}
