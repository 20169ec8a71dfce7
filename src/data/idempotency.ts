import type { ExpressionBuilder } from "kysely";
import type { Queryable } from "./database.ts";
import type { Tables } from "./tables.ts";

/** A request with an idempotency key. Within an account and organization, requests with the same key run only once. */
export interface NamedRequest {
  readonly organizationId: string;
  readonly accountId: string;
  readonly key: string;
  /** SHA-256 of the request, including its API key. */
  readonly request: Buffer;
}

/**
 * Result of claiming an idempotency key.
 *
 * - `first`: the caller must run the request, and then call `keepAnswer` or `releaseKey`.
 * - `answered`: an earlier identical request stored its response.
 * - `other`: a different request uses the key.
 * - `unfinished`: the first request is in flight, or its result is unknown.
 */
export type Claim =
  | { readonly kind: "first" }
  | { readonly kind: "answered"; readonly sealedAnswer: string }
  | { readonly kind: "other" }
  | { readonly kind: "unfinished" };

const KEPT_MS = 24 * 60 * 60 * 1_000;
/** Maximum number of expired keys to delete with each claim. A claim adds one key, so a higher number lets the table shrink. */
const CLEARED_AT_ONCE = 20;

/** Claims the idempotency key for this request, or returns how the key is already used. A key expires after 24 hours. */
export async function claimKey(db: Queryable, named: NamedRequest, nowMs: number): Promise<Claim> {
  const oldest = new Date(nowMs - KEPT_MS);
  const row = { ...named, sealedAnswer: null, createdAt: new Date(nowMs) };
  const claimed = await db
    .insertInto("idempotencyKeys")
    .values(row)
    .onConflict((conflict) =>
      conflict
        .columns(["organizationId", "accountId", "key"])
        .doUpdateSet(row)
        .where("idempotencyKeys.createdAt", "<=", oldest),
    )
    .returning("key")
    .executeTakeFirst();
  if (claimed) {
    await clearOld(db, oldest);
    return { kind: "first" };
  }
  const known = await db
    .selectFrom("idempotencyKeys")
    .select(["request", "sealedAnswer"])
    .where(isNamed(named))
    .executeTakeFirst();
  // The key was released between the two queries. The client can retry, as for a request in flight.
  if (!known) return { kind: "unfinished" };
  if (!known.request.equals(named.request)) return { kind: "other" };
  const { sealedAnswer } = known;
  return sealedAnswer === null ? { kind: "unfinished" } : { kind: "answered", sealedAnswer };
}

/** Stores the response, which is then returned for all repetitions of the request. */
export async function keepAnswer(db: Queryable, named: NamedRequest, sealedAnswer: string): Promise<void> {
  await db.updateTable("idempotencyKeys").set({ sealedAnswer }).where(isNamed(named)).execute();
}

/** Encryption context (AAD) that binds a sealed response to its idempotency key. */
export const answerPlace = (named: Pick<NamedRequest, "organizationId" | "accountId" | "key">): string =>
  `idempotency_keys/${named.organizationId}/${named.accountId}/${named.key}`;

/** Releases the key of a request that had no effect, so that the client can send the request again. */
export async function releaseKey(db: Queryable, named: NamedRequest): Promise<void> {
  await db.deleteFrom("idempotencyKeys").where(isNamed(named)).execute();
}

const isNamed =
  ({ organizationId, accountId, key }: NamedRequest) =>
  (eb: ExpressionBuilder<Tables, "idempotencyKeys">) =>
    eb.and({ organizationId, accountId, key });

async function clearOld(db: Queryable, oldest: Date): Promise<void> {
  await db
    .deleteFrom("idempotencyKeys")
    .where(({ eb, refTuple, selectFrom }) =>
      eb(
        refTuple("organizationId", "accountId", "key"),
        "in",
        selectFrom("idempotencyKeys as old")
          .select(["old.organizationId", "old.accountId", "old.key"])
          .where("old.createdAt", "<=", oldest)
          .orderBy("old.createdAt")
          .limit(CLEARED_AT_ONCE)
          .forUpdate()
          .skipLocked()
          .$asTuple("organizationId", "accountId", "key"),
      ),
    )
    .execute();
}
