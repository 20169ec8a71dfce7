import { type RawBuilder, sql } from "kysely";
import type { Queryable } from "../../data/database.ts";

/** How many of a kind one answer holds inside the entities that it is about, all together. */
const MAX_INSIDE = 1_000;

/** Rows that belong to others, in a table with an index by owner and creation. */
export interface Parts {
  readonly table: string;
  /** The column that names the owner. */
  readonly owner: string;
  readonly columns: RawBuilder<unknown>;
  /** Which of them; default: all. */
  readonly where?: RawBuilder<unknown>;
}

/**
 * The newest rows of each owner, oldest first, in one query: no more of each than an even share of what one answer may hold.
 */
export async function newestInside<R>(
  db: Queryable,
  { table, owner, columns, where = sql`true` }: Parts,
  owners: readonly string[],
): Promise<ReadonlyMap<string, readonly R[]>> {
  if (owners.length === 0) return new Map();
  const share = Math.max(1, Math.floor(MAX_INSIDE / owners.length));
  const { rows } = await sql<R & { readonly ownedBy: string }>`
    SELECT owners.id AS owned_by, parts.*
    FROM unnest(${[...owners]}::text[]) AS owners (id)
    CROSS JOIN LATERAL (
      SELECT ${columns} FROM ${sql.table(table)}
      WHERE ${sql.ref(owner)} = owners.id AND ${where}
      ORDER BY created_at DESC, id DESC
      LIMIT ${share}
    ) AS parts
    ORDER BY parts.created_at, parts.id`.execute(db);
  const byOwner = new Map<string, R[]>(owners.map((id) => [id, []]));
  for (const { ownedBy, ...row } of rows) byOwner.get(ownedBy)?.push(row as R);
  return byOwner;
}
