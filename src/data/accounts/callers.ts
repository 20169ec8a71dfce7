import { type RawBuilder, sql } from "kysely";
import { LRUCache } from "lru-cache";
import { parseJson } from "../../event/parse-json.ts";
import { upToEntries } from "../../lib/up-to-entries.ts";
import type { Queryable } from "../database.ts";
import { hashOfToken } from "./api-keys.ts";
import { createSingleFlightCache } from "./single-flight-cache.ts";

export interface KnownKey {
  readonly id: string;
  readonly accountId: string;
  readonly organizationId: string;
  readonly spaceId: string | null;
  /** Permissions of the key, including those of its roles. */
  readonly permissions: ReadonlySet<string>;
  /** Expiry time in milliseconds. `Infinity` when the key never expires. */
  readonly expiresAtMs: number;
}

/** Reason why an API key is inactive. `disabled` means that the key's account is not active. */
export type KeyEnd = "revoked" | "disabled";

/** An active account, found by a login identity. Its permissions apply only to the organization that created that identity. */
export interface KnownAccount {
  readonly id: string;
  readonly identityId: string;
  readonly provider: string;
  readonly organizationId: string;
  /** Permissions of the account in the organization, including those of its roles. `undefined` if the account is not a member. */
  readonly permissions: ReadonlySet<string> | undefined;
}

export interface KnownConversation {
  readonly id: string;
  readonly organizationId: string;
  /** Account that started the conversation and is responsible for all actions with this token. */
  readonly accountId: string;
}

/**
 * Finds the callers behind credentials. Results are at most three seconds old.
 *
 * A lookup returns `undefined` if the credential is unknown or revoked, or if its account is not active. The caller of the lookup
 * must check the expiry of a key, because a key can expire while it is cached. All lookups throw UnavailableError if the database
 * is unavailable, so that an outage never makes a valid caller look unknown.
 */
export type Callers = ReturnType<typeof createCallers>;

/** Maximum age of a cached lookup, in ms. Revocations must take effect within five seconds, and a slow lookup may take two of them. */
const MAX_AGE_MS = 3_000;
const MAX_ENTRIES = 10_000;

export function createCallers({ db }: { readonly db: Queryable }) {
  const bounds = { maxAgeMs: MAX_AGE_MS, maxEntries: MAX_ENTRIES };
  const byHash = createSingleFlightCache({
    ...bounds,
    load: (hash) => readKey(db, sql`api_keys.hash = ${Buffer.from(hash, "base64")}`),
  });
  const deadTokens = new LRUCache<string, true>(upToEntries(MAX_ENTRIES));
  const byId = createSingleFlightCache({ ...bounds, load: (id) => readKey(db, sql`api_keys.id = ${id}`) });
  const byIdentity = createSingleFlightCache({
    ...bounds,
    load(key) {
      const [organizationId, provider, identifier] = parseJson(key) as [string, string, string];
      return readAccount(
        db,
        sql`identities.organization_id = ${organizationId} AND provider = ${provider} AND identifier = ${identifier}`,
      );
    },
  });
  const byIdentityId = createSingleFlightCache({
    ...bounds,
    load: (id) => readAccount(db, sql`identities.id = ${id}`),
  });
  return {
    findKey: async (token: string): Promise<KnownKey | undefined> =>
      keyInForce(await byHash.get(hashOfToken(token).toString("base64"))),
    /** Returns why a known API key is inactive. Returns `undefined` if the key is active or unknown. */
    async findEnd(token: string): Promise<KeyEnd | undefined> {
      const found = await byHash.get(hashOfToken(token).toString("base64"));
      return found && "end" in found ? found.end : undefined;
    },
    findKeyById: async (keyId: string): Promise<KnownKey | undefined> => keyInForce(await byId.get(keyId)),
    /**
     * Finds the conversation of a live token. Queries the database each time, because a token becomes invalid when its conversation ends.
     *
     * Only unknown tokens are cached, because they never become valid.
     */
    async findConversation(liveToken: string): Promise<KnownConversation | undefined> {
      const hash = hashOfToken(liveToken);
      const key = hash.toString("base64");
      if (deadTokens.has(key)) return undefined;
      const found = await readConversation(db, hash);
      if (found === undefined) deadTokens.set(key, true);
      return found;
    },
    findAccount: (organizationId: string, provider: string, identifier: string) =>
      byIdentity.get(JSON.stringify([organizationId, provider, identifier])),
    findAccountByIdentity: byIdentityId.get,
    /** Clears the cache. Called after a change of keys, roles, memberships, accounts or identities. */
    forget() {
      byHash.clear();
      byId.clear();
      byIdentity.clear();
      byIdentityId.clear();
    },
  };
}

/** Runs the same query for existing and unknown keys, so that response times do not reveal whether a key exists. */
async function readKey(db: Queryable, condition: RawBuilder<unknown>): Promise<FoundKey | undefined> {
  const { rows } = await sql<KeyRow>`
    SELECT api_keys.id, account_id, api_keys.organization_id, space_id, expires_at,
           revoked_at IS NOT NULL AS is_revoked, accounts.status = 'active' AS is_active,
           ${permissionsOf("api_keys")} AS permissions
    FROM api_keys
    JOIN accounts ON accounts.id = account_id
    WHERE ${condition}`.execute(db);
  const [row] = rows;
  if (row === undefined) return undefined;
  const { permissions, expiresAt, isRevoked, isActive, ...key } = row;
  if (isRevoked) return { end: "revoked" };
  if (!isActive) return { end: "disabled" };
  return {
    ...key,
    permissions: new Set(permissions),
    expiresAtMs: expiresAt?.getTime() ?? Number.POSITIVE_INFINITY,
  };
}

async function readConversation(db: Queryable, hash: Buffer): Promise<KnownConversation | undefined> {
  return db
    .selectFrom("conversations")
    .innerJoin("accounts", "accounts.id", "conversations.authorId")
    .select(["conversations.id", "conversations.organizationId", "accounts.id as accountId"])
    .where("liveTokenHash", "=", hash)
    .where("accounts.status", "=", "active")
    .executeTakeFirst();
}

interface KeyRow {
  readonly id: string;
  readonly accountId: string;
  readonly organizationId: string;
  readonly spaceId: string | null;
  readonly expiresAt: Date | null;
  readonly isRevoked: boolean;
  readonly isActive: boolean;
  readonly permissions: readonly string[];
}

type FoundKey = KnownKey | { readonly end: KeyEnd };

const keyInForce = (found: FoundKey | undefined): KnownKey | undefined =>
  found === undefined || "end" in found ? undefined : found;

async function readAccount(db: Queryable, condition: RawBuilder<unknown>): Promise<KnownAccount | undefined> {
  const { rows } = await sql<AccountRow>`
    SELECT accounts.id, identities.id AS identity_id, provider, identities.organization_id,
           memberships.id IS NOT NULL AS is_member, ${permissionsOf("memberships")} AS permissions
    FROM identities
    JOIN accounts ON accounts.id = identities.account_id
    LEFT JOIN memberships ON memberships.account_id = accounts.id
      AND memberships.organization_id = identities.organization_id
    WHERE ${condition} AND accounts.status = 'active'`.execute(db);
  const [row] = rows;
  if (row === undefined) return undefined;
  const { isMember, permissions, ...account } = row;
  return { ...account, permissions: isMember ? new Set(permissions) : undefined };
}

interface AccountRow extends Omit<KnownAccount, "permissions"> {
  readonly isMember: boolean;
  readonly permissions: readonly string[];
}

/**
 * Returns a SQL expression for the permissions of an API key or membership, including those of its roles. Roles of other
 * organizations are ignored.
 */
export const permissionsOf = (table: "api_keys" | "memberships"): RawBuilder<unknown> => sql`
  ARRAY(
    SELECT unnest(${sql.ref(`${table}.permissions`)})
    UNION
    SELECT unnest(roles.permissions) FROM roles
    WHERE roles.id = ANY(${sql.ref(`${table}.role_ids`)})
      AND roles.organization_id = ${sql.ref(`${table}.organization_id`)}
  )`;
