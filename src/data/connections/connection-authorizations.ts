import { createHash } from "node:crypto";
import type { Author } from "../accounts/audit-entry.ts";
import type { Queryable, Trx } from "../database.ts";
import type { Keyring } from "../keyring/keyring.ts";

export interface PendingAuthorization {
  readonly connectionId: string;
  /** Version of the connection's config when the authorization started. */
  readonly connectionVersion: number;
  readonly redirectUri: string;
  readonly verifier: string;
  readonly author: Author;
}

/** Maximum number of unfinished OAuth authorizations per connection. A new authorization replaces the oldest one. */
const MAX_PENDING = 20;

/** Stores an unfinished OAuth authorization. The OAuth callback finds it by the hash of its `state` parameter. */
export async function insertAuthorization(
  trx: Trx,
  keyring: Keyring,
  state: string,
  pending: Omit<PendingAuthorization, "author"> & {
    readonly author: Author & { readonly accountId: string };
  },
  { nowMs, lifeMs }: { readonly nowMs: number; readonly lifeMs: number },
): Promise<void> {
  const { connectionId, connectionVersion, redirectUri, verifier, author } = pending;
  const stateHash = hashOf(state);
  await trx.deleteFrom("connectionAuthorizations").where("expiresAt", "<=", new Date(nowMs)).execute();
  await trx
    .deleteFrom("connectionAuthorizations")
    .where("stateHash", "in", (eb) =>
      eb
        .selectFrom("connectionAuthorizations")
        .select("stateHash")
        .where("connectionId", "=", connectionId)
        .orderBy("createdAt", "desc")
        .offset(MAX_PENDING - 1),
    )
    .execute();
  await trx
    .insertInto("connectionAuthorizations")
    .values({
      stateHash,
      connectionId,
      connectionVersion,
      redirectUri,
      accountId: author.accountId,
      keyId: author.keyId,
      sealedVerifier: keyring.seal(verifier, verifierPlace(connectionId, stateHash)),
      createdAt: new Date(nowMs),
      expiresAt: new Date(nowMs + lifeMs),
    })
    .execute();
}

/**
 * Finds and deletes the unfinished authorization with this `state`, so that each can be used only once.
 *
 * @returns `undefined` if it is unknown or expired, if its connection has changed, or if its author no longer has access
 */
export async function takeAuthorization(
  db: Queryable,
  keyring: Keyring,
  state: string,
  nowMs: number,
): Promise<PendingAuthorization | undefined> {
  const stateHash = hashOf(state);
  const row = await db
    .deleteFrom("connectionAuthorizations")
    .where("stateHash", "=", stateHash)
    .returningAll()
    .executeTakeFirst();
  if (row === undefined || row.expiresAt.getTime() <= nowMs) return undefined;
  const connection = await db
    .selectFrom("connections")
    .select("organizationId")
    .where("id", "=", row.connectionId)
    .where("version", "=", row.connectionVersion)
    .executeTakeFirst();
  if (!connection) return undefined;
  const { connectionId, connectionVersion, redirectUri, accountId, keyId } = row;
  const author = { organizationId: connection.organizationId, accountId, keyId, requestId: null };
  if (!(await isInForce(db, author, nowMs))) return undefined;
  const verifier = keyring.open(row.sealedVerifier, verifierPlace(connectionId, stateHash));
  return { connectionId, connectionVersion, redirectUri, verifier, author };
}

/**
 * Returns true if the author still has access to the organization. Checks the author's API key if one was used, otherwise the
 * membership.
 */
async function isInForce(
  db: Queryable,
  { organizationId, accountId, keyId }: Author & { readonly accountId: string },
  nowMs: number,
): Promise<boolean> {
  const ofAccount = db
    .selectFrom("accounts")
    .select("accounts.id")
    .where("accounts.id", "=", accountId)
    .where("accounts.status", "=", "active");
  const row = await (keyId === null
    ? ofAccount
        .innerJoin("memberships", "memberships.accountId", "accounts.id")
        .where("memberships.organizationId", "=", organizationId)
    : ofAccount
        .innerJoin("apiKeys", "apiKeys.accountId", "accounts.id")
        .where("apiKeys.id", "=", keyId)
        .where("apiKeys.revokedAt", "is", null)
        .where((eb) =>
          eb.or([eb("apiKeys.expiresAt", "is", null), eb("apiKeys.expiresAt", ">", new Date(nowMs))]),
        )
  ).executeTakeFirst();
  return row !== undefined;
}

const hashOf = (state: string): Buffer => createHash("sha256").update(state).digest();

/** Encryption context (AAD) that binds an encrypted PKCE verifier to its authorization. */
export const verifierPlace = (connectionId: string, stateHash: Buffer): string =>
  `connections/${connectionId}/authorizations/${stateHash.toString("hex")}`;
