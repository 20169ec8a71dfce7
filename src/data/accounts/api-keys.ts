import { createHash, randomBytes } from "node:crypto";
import { createId, encodeBase32 } from "../../lib/ids.ts";
import { recordChange } from "../changes.ts";
import type { Queryable, Trx } from "../database.ts";
import { recordAudit } from "./audit.ts";
import type { Author } from "./audit-entry.ts";

const PREFIX = "ik_";
const KEY_BYTES = 25;
/** The shown part of a key: 8 of its 40 random characters. */
const SHOWN_CHARS = PREFIX.length + 8;

/** Whose key it is, and what it may do: its `permissions`, and those that its roles have whenever it is used. */
export interface KeyGrant {
  readonly organizationId: string;
  readonly spaceId: string | null;
  readonly accountId: string;
  readonly name: string;
  readonly permissions: readonly string[];
  /** Roles of the same organization; default: none. */
  readonly roleIds?: readonly string[];
  /** From then on it is no key any more; default: never. */
  readonly expiresAt?: Date | null;
}

export interface NewApiKey {
  readonly id: string;
  /** The only time that it is seen: what is kept is its hash. */
  readonly token: string;
}

/** A new bearer token, `ik_` + 40 characters of 200 random bits, and what is stored of it. */
export function createToken(): { readonly token: string; readonly prefix: string; readonly hash: Buffer } {
  const token = PREFIX + encodeBase32(randomBytes(KEY_BYTES));
  return { token, prefix: token.slice(0, SHOWN_CHARS), hash: hashOfToken(token) };
}

/** Makes a key. */
export async function createApiKey(db: Queryable, grant: KeyGrant, nowMs: number): Promise<NewApiKey> {
  const { token, prefix } = createToken();
  return { id: await insertKey(db, token, prefix, grant, nowMs), token };
}

/** Accepts a key that was made elsewhere. Nothing changes where it is known, revoked keys included. */
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
 * A key is stored and found by its hash: the time of a search tells something of the hash, not of
 * the key. A key has too many random bits for a slow hash to add anything.
 */
export const hashOfToken = (token: string): Buffer => createHash("sha256").update(token).digest();

/** Revokes a key for good. It lets go of its roles, which can then be deleted. */
export async function revokeApiKey(trx: Trx, author: Author, id: string, nowMs: number): Promise<void> {
  const revokedAt = new Date(nowMs);
  const revoked = { revokedAt, updatedAt: revokedAt, permissions: [], roleIds: [] };
  await trx.updateTable("apiKeys").set(revoked).where("id", "=", id).execute();
  await recordAudit(trx, author, { action: "revoke", entity: "apiKey", id }, nowMs);
  await recordChange(trx, { kind: "access", key: author.organizationId });
}
