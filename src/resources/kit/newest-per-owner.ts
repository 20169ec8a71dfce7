import { type RawBuilder, sql } from "kysely";
import type { Queryable } from "../../data/database.ts";
import type { Listed } from "../../http/page.ts";

/** How many of a kind one answer holds inside the entities that it is about, all together. */
const MAX_INSIDE = 1_000;
/** And how much of what weighs. */
const MAX_WEIGHT = 1_048_576;

/** Rows that belong to others, in a table with an index by owner and creation. */
export interface Parts {
  readonly table: string;
  /** The column that names the owner. */
  readonly owner: string;
  readonly columns: RawBuilder<unknown>;
  /** How much room one takes, beside its other columns; default: none. */
  readonly weight?: RawBuilder<unknown>;
  /** Which of them; default: all. */
  readonly where?: RawBuilder<unknown>;
}

/**
 * The newest rows of each owner, oldest first, and how many there are: no more of each than an even share of what one answer may
 * hold, by number and by weight, but the newest in any case.
 */
export async function readNewestPerOwner<R>(
  db: Queryable,
  { table, owner, columns, weight = sql`0`, where = sql`true` }: Parts,
  owners: readonly string[],
): Promise<(owner: string) => Listed<R>> {
  if (owners.length === 0) return () => ({ items: [], total: 0 });
  const share = (of: number): number => Math.max(1, Math.floor(of / owners.length));
  const { rows } = await sql<R & { readonly ownedBy: string; readonly above: unknown }>`
    SELECT owners.id AS owned_by, parts.*
    FROM unnest(${[...owners]}::text[]) AS owners (id)
    CROSS JOIN LATERAL (
      SELECT newest.*, sum(${weight}) OVER (ORDER BY created_at DESC, id DESC) - ${weight} AS above
      FROM (
        SELECT ${columns} FROM ${sql.table(table)}
        WHERE ${sql.ref(owner)} = owners.id AND ${where}
        ORDER BY created_at DESC, id DESC
        LIMIT ${share(MAX_INSIDE)}
      ) AS newest
    ) AS parts
    WHERE above < ${share(MAX_WEIGHT)}
    ORDER BY parts.created_at, parts.id`.execute(db);
  const counts = await sql<{ readonly ownedBy: string; readonly total: number }>`
    SELECT ${sql.ref(owner)} AS owned_by, count(*)::int AS total FROM ${sql.table(table)}
    WHERE ${sql.ref(owner)} = ANY (${[...owners]}::text[]) AND ${where}
    GROUP BY 1`.execute(db);
  const totals = new Map(counts.rows.map(({ ownedBy, total }) => [ownedBy, total]));
  const byOwner = new Map<string, R[]>(owners.map((id) => [id, []]));
  for (const { ownedBy, above: _, ...row } of rows) byOwner.get(ownedBy)?.push(row as R);
  return (id) => ({ items: byOwner.get(id) ?? [], total: totals.get(id) ?? 0 });
}
