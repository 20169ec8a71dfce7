import type { ExpressionBuilder } from "kysely";
import type { Queryable } from "./database.ts";
import type { Tables } from "./tables.ts";

/** A request with an idempotency key. Requests with the same key, account and organization run only once. */
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
/** Maximum number of expired keys that each claim deletes. The number is above 1, so that the table can shrink. */
const CLEARED_AT_ONCE = 20;

/** Claims the idempotency key for this request, or returns the current use of the key. Keys expire after 24 hours. */
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
  // The key was released between the two queries. Respond as for an unfinished request, so that the client retries.
  if (!known) return { kind: "unfinished" };
  if (!known.request.equals(named.request)) return { kind: "other" };
  const { sealedAnswer } = known;
  return sealedAnswer === null ? { kind: "unfinished" } : { kind: "answered", sealedAnswer };
}

/** Stores the response of the first request. Repetitions of the request get the same response. */
export async function keepAnswer(db: Queryable, named: NamedRequest, sealedAnswer: string): Promise<void> {
  await db.updateTable("idempotencyKeys").set({ sealedAnswer }).where(isNamed(named)).execute();
}

/** Encryption context (AAD) that binds an encrypted response to its idempotency key. */
export const answerPlace = (named: Pick<NamedRequest, "organizationId" | "accountId" | "key">): string =>
  `idempotency_keys/${named.organizationId}/${named.accountId}/${named.key}`;

/** Releases the idempotency key of a request that changed nothing, so that the client can send the request again. */
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
