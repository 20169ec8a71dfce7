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
   * Fetches the keys again after none of the cached keys matched, because the sender may have rotated its keys. Resolves with `undefined`
   * if the last fetch was too recent. Rejects if the fetch fails, because the request can then be neither accepted nor rejected.
   */
  readonly renew: (url: string, nowMs: number) => Promise<readonly PublicKey[] | undefined>;
}
