import type { PublicKey } from "./parse-keys.ts";

/**
 * Provides the public keys that a URL serves.
 *
 * @throws UnavailableError if the keys cannot be fetched
 */
export interface KeySource {
  /** Returns the cached keys directly, or a promise if the keys must be fetched. */
  readonly get: (url: string, nowMs: number) => readonly PublicKey[] | Promise<readonly PublicKey[]>;
  /**
   * Fetches the keys again, because the sender may have rotated its keys. Resolves with `undefined` if the last fetch was too
   * recent, and rejects if the fetch fails.
   */
  readonly renew: (url: string, nowMs: number) => Promise<readonly PublicKey[] | undefined>;
}
