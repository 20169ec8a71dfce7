import { sql } from "kysely";
import type { Queryable } from "../database.ts";
import type { Row } from "../tables.ts";

/** Counting stops at this number, because an organization can have millions of dead letters. */
export const MAX_COUNTED_LETTERS = 10_000;
/** Maximum total size of the events of a page, in bytes of their stored JSON. A page has at least one dead letter. */
const MAX_PAGE_BYTES = 16 * 1024 * 1024;

export interface NewestLettersQuery {
  readonly appId?: string | undefined;
  /** Internal ids of channels. Selects events of their topics. */
  readonly channelNumbers?: readonly number[] | undefined;
  readonly subscriptionId?: string | undefined;
  readonly type?: string | undefined;
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  readonly limit: number;
  /** Position of the last dead letter of the previous page. `undefined` for the first page. */
  readonly after?: { readonly createdAtMs: number; readonly id: string } | undefined;
}

export interface LetterOfApp extends Row<"deadLetters"> {
  readonly appId: string;
}

/**
 * Lists the newest dead letters of an organization. Leaves out those of agents.
 * @returns the page, and its last dead letter unless it is the last page
 */
export async function listNewestDeadLetters(
  db: Queryable,
  organizationId: string,
  { appId, channelNumbers, subscriptionId, type, from, to, limit, after }: NewestLettersQuery,
): Promise<{
  readonly letters: readonly LetterOfApp[];
  readonly total: number;
  readonly last: LetterOfApp | undefined;
}> {
  const matching = db
    .selectFrom("deadLetters as l")
    .innerJoin("subscriptions as s", "s.id", "l.subscriptionId")
    .where("l.organizationId", "=", organizationId)
    .where("s.agent", "is", null)
    .$if(appId !== undefined, (query) => query.where("s.appId", "=", appId ?? ""))
    .$if(subscriptionId !== undefined, (query) => query.where("s.id", "=", subscriptionId ?? ""))
    .$if(type !== undefined, (query) => query.where("l.type", "=", type ?? ""))
    .$if(from !== undefined, (query) => query.where("l.createdAt", ">=", new Date(from ?? 0)))
    .$if(to !== undefined, (query) => query.where("l.createdAt", "<=", new Date(to ?? 0)))
    .$if(channelNumbers !== undefined, (query) =>
      query.where("l.topic", "in", (eb) =>
        eb
          .selectFrom("topics")
          .select("topic")
          .where(sql<boolean>`channel_number = ANY (${[...(channelNumbers ?? [])]}::bigint[])`),
      ),
    );
  const { total } = await db
    .selectFrom(matching.select("l.id").limit(MAX_COUNTED_LETTERS).as("counted"))
    .select(({ fn }) => fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  const page = matching
    .$if(after !== undefined, (query) =>
      query.where(
        sql<boolean>`(l.created_at, l.id) < (${new Date(after?.createdAtMs ?? 0)}::timestamptz, ${after?.id ?? ""})`,
      ),
    )
    .selectAll("l")
    .select("s.appId")
    .orderBy("l.createdAt", "desc")
    .orderBy("l.id", "desc")
    // One more than the page, which shows whether another page follows.
    .limit(limit + 1);
  const sized = db
    .selectFrom(page.as("page"))
    .selectAll()
    .select(
      sql<number>`sum(octet_length(fields::text)) OVER (ORDER BY created_at DESC, id DESC) - octet_length(fields::text)`.as(
        "bytesBefore",
      ),
    )
    .select(sql<number>`count(*) OVER ()::int`.as("available"));
  const rows = await db
    .selectFrom(sized.as("sized"))
    .selectAll()
    .where("bytesBefore", "<", MAX_PAGE_BYTES)
    .orderBy("createdAt", "desc")
    .orderBy("id", "desc")
    .limit(limit)
    .execute();
  const letters = rows.map(({ bytesBefore: _, available: __, ...letter }) => letter);
  const isLast = letters.length === (rows[0]?.available ?? 0);
  return { letters, total, last: isLast ? undefined : letters.at(-1) };
}
