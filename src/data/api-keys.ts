import { createHash, randomBytes } from "node:crypto";
import { createId, encodeBase32 } from "../lib/ids.ts";
import type { Queryable } from "./database.ts";

const PREFIX = "ik_";
const KEY_BYTES = 25;
/** What of a key may be shown to tell it from others: 8 of its 40 random characters. */
const SHOWN_CHARS = PREFIX.length + 8;
const MAX_TOKEN_CHARS = 1_024;

/** Whose key it is, and what it may do. */
export interface KeyGrant {
  readonly organizationId: string;
  readonly spaceId: string | null;
  readonly accountId: string;
  readonly name: string;
  readonly permissions: readonly string[];
}

/** A key as a request presents it, once it is known to be valid. */
export interface KnownKey {
  readonly id: string;
  readonly accountId: string;
  readonly organizationId: string;
  readonly spaceId: string | null;
  readonly permissions: readonly string[];
}

/** Makes a key: `ik_` + 40 characters of 200 random bits. The only time that it is seen; what is kept is its hash. */
export async function createApiKey(db: Queryable, grant: KeyGrant, nowMs: number): Promise<string> {
  const token = PREFIX + encodeBase32(randomBytes(KEY_BYTES));
  await insertKey(db, token, token.slice(0, SHOWN_CHARS), grant, nowMs);
  return token;
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
  grant: KeyGrant,
  nowMs: number,
): Promise<void> {
  await db
    .insertInto("apiKeys")
    .values({
      ...grant,
      id: createId("key", nowMs),
      prefix,
      hash: hashOf(token),
      permissions: [...grant.permissions],
      expiresAt: null,
      revokedAt: null,
      createdAt: new Date(nowMs),
      updatedAt: new Date(nowMs),
    })
    .onConflict((conflict) => conflict.column("hash").doNothing())
    .execute();
}

/**
 * The key behind a bearer token, read anew each time: a revoked one ends at once, and nothing is let in while the database
 * is away. Undefined when it is unknown, revoked or expired, or its account is not active.
 *
 * It is found by its hash: whoever measures how long the search takes learns of the hash, not of the key.
 *
 * @throws UnavailableError
 */
export async function findApiKey(db: Queryable, token: string, nowMs: number): Promise<KnownKey | undefined> {
  if (token.length > MAX_TOKEN_CHARS) return undefined;
  const found = await db
    .selectFrom("apiKeys")
    .innerJoin("accounts", "accounts.id", "apiKeys.accountId")
    .select([
      "apiKeys.id",
      "apiKeys.accountId",
      "apiKeys.organizationId",
      "apiKeys.spaceId",
      "apiKeys.permissions",
      "apiKeys.expiresAt",
    ])
    .where("apiKeys.hash", "=", hashOf(token))
    .where("apiKeys.revokedAt", "is", null)
    .where("accounts.status", "=", "active")
    .executeTakeFirst();
  if (!found) return undefined;
  const { expiresAt, ...key } = found;
  return expiresAt !== null && expiresAt.getTime() <= nowMs ? undefined : key;
}

const hashOf = (token: string): Buffer => createHash("sha256").update(token).digest();
