import type { PublicKey } from "./parse-keys.ts";

/**
 * Public keys at an address, as they were fetched not long ago.
 *
 * @throws UnavailableError where they cannot be had now.
 */
export interface KeySource {
  /** At once where they are at hand. */
  readonly get: (url: string, nowMs: number) => readonly PublicKey[] | Promise<readonly PublicKey[]>;
  /**
   * Those of now, when those at hand were not enough; undefined where they were fetched a moment ago. Where that cannot be tried, or
   * fails, nobody can tell whether the sender has new keys.
   */
  readonly renew: (url: string, nowMs: number) => Promise<readonly PublicKey[] | undefined>;
}
