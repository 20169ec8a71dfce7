import { randomBytes } from "node:crypto";
import type { Clock } from "../lib/clock.ts";
import { createSealingKey, openSecret, type SealingKey, sealSecret } from "../lib/secret.ts";
import type { Queryable } from "./database.ts";

/** Seals and opens what the database keeps secret. `row` binds a sealed text to its place (`channels/17/settings`). */
export interface Keyring {
  readonly seal: (plaintext: string, row: string) => string;
  /** @throws Error when the text was sealed under another key or for another row, or was changed. */
  readonly open: (sealed: string, row: string) => string;
  /** The cluster's key for channel ids: see `lib/channel-id.ts`. */
  readonly channelIdKey: Buffer;
  /** The cluster's key for access tokens: 32 bytes. */
  readonly accessTokenKey: Buffer;
}

/** The master key given is not the one that the database was set up with. The message says what to do. */
export class WrongMasterKeyError extends Error {
  override readonly name = "WrongMasterKeyError";
}

const CHECK_TEXT = "inlet master key";
const CHECK_ROW = "cluster/masterKeyCheck";
const CHANNEL_ID_KEY_ROW = "cluster/channelIdKey";
const ACCESS_TOKEN_KEY_ROW = "cluster/accessTokenKey";
const RANDOM_KEY_BYTES = 32;

/**
 * Checks the master key (32 bytes) against the database's check value. The first gateway of a new database stores that, and
 * makes the keys for channel ids and access tokens; of several at once one wins, and all use what it stored.
 *
 * @throws WrongMasterKeyError
 */
export async function openKeyring(options: {
  readonly db: Queryable;
  readonly masterKey: Buffer;
  readonly clock: Clock;
}): Promise<Keyring> {
  const { db, clock } = options;
  const key = createSealingKey(options.masterKey);
  await db
    .insertInto("cluster")
    .values({
      masterKeyId: key.id,
      masterKeyCheck: sealSecret(key, CHECK_TEXT, CHECK_ROW),
      sealedChannelIdKey: sealRandomKey(key, CHANNEL_ID_KEY_ROW),
      createdAt: new Date(clock()),
    })
    .onConflict((conflict) => conflict.column("singleton").doNothing())
    .execute();
  const stored = await db.selectFrom("cluster").selectAll().executeTakeFirstOrThrow();
  if (!opensCheck(key, stored.masterKeyCheck)) {
    throw new WrongMasterKeyError(
      `The master key (${key.id}) is not the one that this database was set up with (${stored.masterKeyId}): set ` +
        "INLET_MASTER_KEY, or restore master.key in the data directory, to the key of the first start.",
    );
  }
  const sealedAccessTokenKey = stored.sealedAccessTokenKey ?? (await makeAccessTokenKey(db, key));
  return {
    seal: (plaintext, row) => sealSecret(key, plaintext, row),
    open: (sealed, row) => openSecret(key, sealed, row),
    channelIdKey: openRandomKey(key, stored.sealedChannelIdKey, CHANNEL_ID_KEY_ROW),
    accessTokenKey: openRandomKey(key, sealedAccessTokenKey, ACCESS_TOKEN_KEY_ROW),
  };
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

function opensCheck(key: SealingKey, check: string): boolean {
  try {
    return openSecret(key, check, CHECK_ROW) === CHECK_TEXT;
  } catch {
    return false;
  }
}
