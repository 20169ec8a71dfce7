import type { PublicKey } from "./parse-keys.ts";

/**
 * Provides the public keys at a URL.
 *
 * @throws UnavailableError if the keys cannot be fetched
 */
export interface KeySource {
  /** Returns cached keys directly, or a promise if the keys must be fetched. */
  readonly get: (url: string, nowMs: number) => readonly PublicKey[] | Promise<readonly PublicKey[]>;
  /**
   * Fetches the keys again after none of the cached keys matched. Resolves with `undefined` if the last fetch was too recent.
   *
   * Rejects if the fetch fails. The sender may have new keys, so the request can be neither accepted nor rejected.
   */
  readonly renew: (url: string, nowMs: number) => Promise<readonly PublicKey[] | undefined>;
}
