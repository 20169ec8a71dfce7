import type { Clock } from "../lib/clock.ts";
import type { Queryable } from "./database.ts";

/** Seals and opens what the database keeps secret. `row` binds a sealed text to its place (`channels/17/settings`). */
export interface Keyring {
  readonly seal: (plaintext: string, row: string) => string;
  /** @throws Error when the text was sealed under another key or for another row, or was changed. */
  readonly open: (sealed: string, row: string) => string;
  /** The cluster's key for channel ids: see `lib/channel-id.ts`. */
  readonly channelIdKey: Buffer;
}

/** The master key given is not the one that the database was set up with. The message says what to do. */
export class WrongMasterKeyError extends Error {
  override readonly name = "WrongMasterKeyError";
}

/**
 * Checks the master key (32 bytes) against the database's check value; on the first start it stores one, and makes the channel-id key.
 *
 * @throws WrongMasterKeyError
 */
export declare function openKeyring(options: {
  readonly db: Queryable;
  readonly masterKey: Buffer;
  readonly clock: Clock;
}): Promise<Keyring>;
