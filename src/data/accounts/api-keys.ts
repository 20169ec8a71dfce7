import { createHash, randomBytes } from "node:crypto";
import { createId, encodeBase32 } from "../../lib/ids.ts";
import { recordChange } from "../changes.ts";
import type { Queryable, Trx } from "../database.ts";
import { recordAudit } from "./audit.ts";
import type { Author } from "./audit-entry.ts";

const PREFIX = "ik_";
const KEY_BYTES = 25;
/** Number of leading characters of an API key that users may see later: the prefix `ik_` and 8 of its 40 random characters. */
const SHOWN_CHARS = PREFIX.length + 8;

/** Owner and permissions of a new API key. The key also has all permissions of its roles. */
export interface KeyGrant {
  readonly organizationId: string;
  readonly spaceId: string | null;
  readonly accountId: string;
  readonly name: string;
  readonly permissions: readonly string[];
  /** Ids of the roles of this key. The roles must belong to the same organization. Defaults to none. */
  readonly roleIds?: readonly string[];
  /** Time at which the key expires. By default it never expires. */
  readonly expiresAt?: Date | null;
}

export interface NewApiKey {
  readonly id: string;
  /** The API key in plain text. The caller must show the key now, because the database stores only its hash. */
  readonly token: string;
}

/** Creates a random API key of 200 bits, encoded as `ik_` and 40 characters. Also returns the visible prefix and the hash to store. */
export function createToken(): { readonly token: string; readonly prefix: string; readonly hash: Buffer } {
  const token = PREFIX + encodeBase32(randomBytes(KEY_BYTES));
  return { token, prefix: token.slice(0, SHOWN_CHARS), hash: hashOfToken(token) };
}

export async function createApiKey(db: Queryable, grant: KeyGrant, nowMs: number): Promise<NewApiKey> {
  const { token, prefix } = createToken();
  return { id: await insertKey(db, token, prefix, grant, nowMs), token };
}

/** Stores an API key from the gateway's configuration. Does nothing if the key is already stored, even if it was revoked. */
export async function acceptApiKey(
  db: Queryable,
  token: string,
  grant: KeyGrant,
  nowMs: number,
): Promise<void> {
  await insertKey(db, token, null, grant, nowMs);
}

async function insertKey(
  db: Queryable,
  token: string,
  prefix: string | null,
  { roleIds = [], expiresAt = null, permissions, ...grant }: KeyGrant,
  nowMs: number,
): Promise<string> {
  const id = createId("key", nowMs);
  await db
    .insertInto("apiKeys")
    .values({
      ...grant,
      id,
      prefix,
      hash: hashOfToken(token),
      permissions: [...permissions],
      roleIds: [...roleIds],
      expiresAt,
      revokedAt: null,
      createdById: null,
      createdAt: new Date(nowMs),
      updatedAt: new Date(nowMs),
    })
    .onConflict((conflict) => conflict.column("hash").doNothing())
    .execute();
  return id;
}

/**
 * Hashes a token for storage and lookup. A fast hash such as SHA-256 is enough, because a token has 200 random bits and cannot be
 * guessed.
 *
 * The duration of a lookup may reveal parts of the hash, but not of the token.
 */
export const hashOfToken = (token: string): Buffer => createHash("sha256").update(token).digest();

/** Revokes an API key permanently. Also removes its references to roles, so that the roles can be deleted. */
export async function revokeApiKey(trx: Trx, author: Author, id: string, nowMs: number): Promise<void> {
  const revokedAt = new Date(nowMs);
  const revoked = { revokedAt, updatedAt: revokedAt, permissions: [], roleIds: [] };
  await trx.updateTable("apiKeys").set(revoked).where("id", "=", id).execute();
  await recordAudit(trx, author, { action: "revoke", entity: "apiKey", id }, nowMs);
  await recordChange(trx, { kind: "access", key: author.organizationId });
}
