import type { ExpressionBuilder } from "kysely";
import type { Queryable } from "./database.ts";
import type { Tables } from "./tables.ts";

/** A request that its client has named, so that it is done once. Names are each account's own, in each organization. */
export interface NamedRequest {
  readonly organizationId: string;
  readonly accountId: string;
  readonly key: string;
  /** SHA-256 of what is asked for, and by which API key. */
  readonly request: Buffer;
}

/**
 * `first`: it is this one's to do, and then `keepAnswer` or `releaseKey`. `other`: the name is another request's. `unfinished`: the
 * first one is under way, or ended in a way that nobody knows of.
 */
export type Claim =
  | { readonly kind: "first" }
  | { readonly kind: "answered"; readonly sealedAnswer: string }
  | { readonly kind: "other" }
  | { readonly kind: "unfinished" };

const KEPT_MS = 24 * 60 * 60 * 1_000;
/** Old names that a claim clears away: more than it adds. */
const CLEARED_AT_ONCE = 20;

/** Takes the name for this request, or tells whose it is. A name is free again after 24 hours. */
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
  // Released in between: to its sender that is as if it were under way.
  if (!known) return { kind: "unfinished" };
  if (!known.request.equals(named.request)) return { kind: "other" };
  const { sealedAnswer } = known;
  return sealedAnswer === null ? { kind: "unfinished" } : { kind: "answered", sealedAnswer };
}

/** Keeps what the request was answered, for those that repeat it. */
export async function keepAnswer(db: Queryable, named: NamedRequest, sealedAnswer: string): Promise<void> {
  await db.updateTable("idempotencyKeys").set({ sealedAnswer }).where(isNamed(named)).execute();
}

/** Where the answer is sealed. */
export const answerPlace = (named: Pick<NamedRequest, "organizationId" | "accountId" | "key">): string =>
  `idempotency_keys/${named.organizationId}/${named.accountId}/${named.key}`;

/** Gives the name back: the request came to nothing, and may be sent again. */
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
