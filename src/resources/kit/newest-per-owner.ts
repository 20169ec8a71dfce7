import { type RawBuilder, sql } from "kysely";
import type { Queryable } from "../../data/database.ts";
import type { Listed } from "../../http/page.ts";

/** Maximum number of nested rows of one kind in a response. The limit is divided evenly among the entities in the response. */
const MAX_INSIDE = 1_000;
/** Maximum total size of nested rows of one kind in a response. `Parts.weight` defines the unit: bytes or characters. */
const MAX_WEIGHT = 1_048_576;

/** Table of rows that are nested in other entities, such as messages in rooms. Needs an index on owner and creation time. */
export interface Parts {
  readonly table: string;
  readonly owner: string;
  readonly columns: RawBuilder<unknown>;
  /** SQL expression for the size of a row. Default: 0, which means that only the number of rows is limited. */
  readonly weight?: RawBuilder<unknown>;
  /** SQL condition that selects rows. Default: all rows. */
  readonly where?: RawBuilder<unknown>;
}

/**
 * Reads the newest rows of each owner, oldest first, and the total count per owner. `MAX_INSIDE` and `MAX_WEIGHT` are
 * divided evenly among the owners, but each owner gets at least one row.
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
