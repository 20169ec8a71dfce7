import { createHmac, randomBytes } from "node:crypto";
import type { Clock } from "../../lib/clock.ts";
import { UnavailableError } from "../../lib/errors.ts";
import {
  createSealingKey,
  OtherKeyError,
  openSecret,
  type SealingKey,
  sealSecret,
} from "../../lib/secrets/secret.ts";
import type { Queryable } from "../database.ts";

/**
 * Encrypts and decrypts secrets of the database. A text can be decrypted only with the same `row`, the place where it is stored,
 * such as `channels/17/settings`.
 */
export interface Keyring {
  readonly seal: (plaintext: string, row: string) => string;
  /**
   * Decrypts a text.
   *
   * @throws UnavailableError if this gateway does not have the master key of the text
   * @throws Error if the text was encrypted for another row, or was modified
   */
  readonly open: (sealed: string, row: string) => string;
  /** Key for generating channel ids. All gateways on this database share it. */
  readonly channelIdKey: Buffer;
  /** Key for hashing channel addresses. It is derived from `channelIdKey`, so that it stays the same when the master key changes. */
  readonly addressHashKey: Buffer;
  /** Key for access tokens, 32 bytes. All gateways on this database share it. */
  readonly accessTokenKey: Buffer;
  /**
   * Makes `seal` encrypt with the database's current master key. Returns false if this gateway does not have that key.
   *
   * @throws UnavailableError
   */
  readonly reload: () => Promise<boolean>;
}

/** Thrown when the configured master key does not fit the database. The message says how to fix it. */
export class WrongMasterKeyError extends Error {
  override readonly name = "WrongMasterKeyError";
}

/** Plain text of the check value in the database. A master key is correct if it decrypts the check value to this text. */
export const CHECK_TEXT = "inlet master key";
export const CHECK_ROW = "cluster/masterKeyCheck";
export const CHANNEL_ID_KEY_ROW = "cluster/channelIdKey";
export const ACCESS_TOKEN_KEY_ROW = "cluster/accessTokenKey";
const RANDOM_KEY_BYTES = 32;

/**
 * Opens the keyring, after checking the 32-byte master key against the check value in the database.
 *
 * The first gateway of a new database stores the check value, and creates the keys for channel ids and access tokens. If several
 * gateways start together, all of them use the keys that were stored first.
 *
 * @param options.newMasterKey new master key of a rotation that is planned or already done. A gateway that has both keys works
 *   during the whole rotation
 * @throws WrongMasterKeyError
 */
export async function openKeyring(options: {
  readonly db: Queryable;
  readonly masterKey: Buffer;
  readonly newMasterKey?: Buffer | undefined;
  readonly clock: Clock;
}): Promise<Keyring> {
  const { db, clock, masterKey, newMasterKey } = options;
  const key = createSealingKey(masterKey);
  const keys = newMasterKey ? [key, createSealingKey(newMasterKey)] : [key];
  await db
    .insertInto("cluster")
    .values({
      masterKeyId: key.id,
      masterKeyCheck: sealSecret(key, CHECK_TEXT, CHECK_ROW),
      sealedChannelIdKey: sealRandomKey(key, CHANNEL_ID_KEY_ROW),
      // A new database has no plain-text addresses. The column defaults to true.
      plainAddresses: false,
      createdAt: new Date(clock()),
    })
    .onConflict((conflict) => conflict.column("singleton").doNothing())
    .execute();
  const stored = await db.selectFrom("cluster").selectAll().executeTakeFirstOrThrow();
  const current = keys.find((one) => opensCheck(one, stored.masterKeyCheck));
  if (!current) {
    throw new WrongMasterKeyError(
      `The master key (${key.id}) does not match this database, which uses the key ${stored.masterKeyId}. Set INLET_MASTER_KEY to the ` +
        "key of the first start, or restore it as master.key in the data directory. After `inlet rotate-master-key`, use the " +
        "new key.",
    );
  }
  const sealedAccessTokenKey = stored.sealedAccessTokenKey ?? (await makeAccessTokenKey(db, current));
  const channelIdKey = openRandomKey(current, stored.sealedChannelIdKey, CHANNEL_ID_KEY_ROW);
  let sealing = current;
  return {
    seal: (plaintext, row) => sealSecret(sealing, plaintext, row),
    open: (sealed, row) => openUnder(keys, sealed, row),
    channelIdKey,
    addressHashKey: createHmac("sha256", channelIdKey).update("inlet channel address").digest(),
    accessTokenKey: openRandomKey(current, sealedAccessTokenKey, ACCESS_TOKEN_KEY_ROW),
    async reload() {
      const { masterKeyId } = await db.selectFrom("cluster").select("masterKeyId").executeTakeFirstOrThrow();
      const known = keys.find(({ id }) => id === masterKeyId);
      if (known) sealing = known;
      return known !== undefined;
    },
  };
}

export async function isMasterKeyOf(db: Queryable, masterKey: Buffer): Promise<boolean> {
  const stored = await db.selectFrom("cluster").select("masterKeyCheck").executeTakeFirst();
  return stored !== undefined && opensCheck(createSealingKey(masterKey), stored.masterKeyCheck);
}

/** Tries each key, because any of them may have encrypted the text. */
function openUnder(keys: readonly SealingKey[], sealed: string, row: string): string {
  let other: unknown;
  for (const key of keys) {
    try {
      return openSecret(key, sealed, row);
    } catch (error) {
      if (!(error instanceof OtherKeyError)) throw error;
      other = error;
    }
  }
  throw new UnavailableError("the master key has changed: restart this gateway with the new key", {
    cause: other,
  });
}

/** Creates the access token key, or returns the key that another gateway stored at the same time. */
async function makeAccessTokenKey(db: Queryable, key: SealingKey): Promise<string> {
  await db
    .updateTable("cluster")
    .set({ sealedAccessTokenKey: sealRandomKey(key, ACCESS_TOKEN_KEY_ROW) })
    .where("sealedAccessTokenKey", "is", null)
    .execute();
  const stored = await db.selectFrom("cluster").select("sealedAccessTokenKey").executeTakeFirstOrThrow();
  if (stored.sealedAccessTokenKey === null)
    throw new Error("the access token key was written, but the database has none");
  return stored.sealedAccessTokenKey;
}

const sealRandomKey = (key: SealingKey, row: string): string =>
  sealSecret(key, randomBytes(RANDOM_KEY_BYTES).toString("base64url"), row);

const openRandomKey = (key: SealingKey, sealed: string, row: string): Buffer =>
  Buffer.from(openSecret(key, sealed, row), "base64url");

export function opensCheck(key: SealingKey, check: string): boolean {
  try {
    return openSecret(key, check, CHECK_ROW) === CHECK_TEXT;
  } catch {
    return false;
  }
}
