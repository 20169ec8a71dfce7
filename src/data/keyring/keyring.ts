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

/** Seals and opens what the database keeps secret. `row` binds a sealed text to its place (`channels/17/settings`). */
export interface Keyring {
  readonly seal: (plaintext: string, row: string) => string;
  /**
   * @throws UnavailableError when the text is sealed under a master key that this gateway does not have.
   * @throws Error when it was sealed for another row, or was changed.
   */
  readonly open: (sealed: string, row: string) => string;
  /** The cluster's key for channel ids: see `lib/secrets/channel-id.ts`. */
  readonly channelIdKey: Buffer;
  /** Derived from that one, for the hashes by which channels' addresses are looked up: it outlives the master key. */
  readonly addressHashKey: Buffer;
  /** The cluster's key for access tokens: 32 bytes. */
  readonly accessTokenKey: Buffer;
  /** Derived from the master key, for MACs over code that is kept in the database. */
  readonly codeMacKey: Buffer;
  /**
   * Seals from now on under the master key that the database has now; false where that is none of the keyring's.
   *
   * @throws UnavailableError
   */
  readonly reload: () => Promise<boolean>;
}

/** The master key given is not the one that the database was set up with. The message says what to do. */
export class WrongMasterKeyError extends Error {
  override readonly name = "WrongMasterKeyError";
}

/** The check value opens to this under the right key. */
export const CHECK_TEXT = "inlet master key";
export const CHECK_ROW = "cluster/masterKeyCheck";
export const CHANNEL_ID_KEY_ROW = "cluster/channelIdKey";
export const ACCESS_TOKEN_KEY_ROW = "cluster/accessTokenKey";
const RANDOM_KEY_BYTES = 32;

/**
 * Checks the master key (32 bytes) against the database's check value. The first gateway of a new database stores that, and
 * makes the keys for channel ids and access tokens; of several at once one wins, and all use what it stored.
 *
 * @param options.newMasterKey the one that the database is about to be changed to, or was: it serves as well, so that a gateway
 * which has both goes on through the change.
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
      // No program from before has served it.
      plainAddresses: false,
      createdAt: new Date(clock()),
    })
    .onConflict((conflict) => conflict.column("singleton").doNothing())
    .execute();
  const stored = await db.selectFrom("cluster").selectAll().executeTakeFirstOrThrow();
  const current = keys.find((one) => opensCheck(one, stored.masterKeyCheck));
  if (!current) {
    throw new WrongMasterKeyError(
      `The master key (${key.id}) is not the one that this database was set up with (${stored.masterKeyId}): set ` +
        "INLET_MASTER_KEY, or restore master.key in the data directory, to the key of the first start, or to the one " +
        "that --rotate-master-key has put in its place.",
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
    codeMacKey: createHmac("sha256", current.bytes).update("inlet code mac").digest(),
    async reload() {
      const { masterKeyId } = await db.selectFrom("cluster").select("masterKeyId").executeTakeFirstOrThrow();
      const known = keys.find(({ id }) => id === masterKeyId);
      if (known) sealing = known;
      return known !== undefined;
    },
  };
}

/** True when the database is sealed under that master key. */
export async function isMasterKeyOf(db: Queryable, masterKey: Buffer): Promise<boolean> {
  const stored = await db.selectFrom("cluster").select("masterKeyCheck").executeTakeFirst();
  return stored !== undefined && opensCheck(createSealingKey(masterKey), stored.masterKeyCheck);
}

/** Under the one of the keys that it was sealed under. */
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

/** The sealed key that is stored, be it this one or another gateway's of the same moment. */
async function makeAccessTokenKey(db: Queryable, key: SealingKey): Promise<string> {
  await db
    .updateTable("cluster")
    .set({ sealedAccessTokenKey: sealRandomKey(key, ACCESS_TOKEN_KEY_ROW) })
    .where("sealedAccessTokenKey", "is", null)
    .execute();
  const stored = await db.selectFrom("cluster").select("sealedAccessTokenKey").executeTakeFirstOrThrow();
  if (stored.sealedAccessTokenKey === null) throw new Error("the database does not keep what it is given");
  return stored.sealedAccessTokenKey;
}

const sealRandomKey = (key: SealingKey, row: string): string =>
  sealSecret(key, randomBytes(RANDOM_KEY_BYTES).toString("base64url"), row);

const openRandomKey = (key: SealingKey, sealed: string, row: string): Buffer =>
  Buffer.from(openSecret(key, sealed, row), "base64url");

/** True when it is the key that the check value was made with. */
export function opensCheck(key: SealingKey, check: string): boolean {
  try {
    return openSecret(key, check, CHECK_ROW) === CHECK_TEXT;
  } catch {
    return false;
  }
}
