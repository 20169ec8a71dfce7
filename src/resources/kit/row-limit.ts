import { sql } from "kysely";
import { LRUCache } from "lru-cache";
import type { Trx } from "../../data/database.ts";
import type { Caller } from "../../http/context.ts";
import { conflict } from "../../http/errors.ts";
import { upToEntries } from "../../lib/up-to-entries.ts";

export interface CountedRows {
  readonly table: string;
  readonly words: string;
  /** For a table without an organization column: the parent table that has one, and the column that refers to the parent. */
  readonly inside?: { readonly table: string; readonly column: string } | undefined;
  readonly omitsSystem?: true;
  /** Whether subscriptions of agents are not counted. They have a limit per caller instead. */
  readonly omitsAgents?: true;
}

/** Checks that the organization may create `added` more rows (default: 1). @throws ApiError 409 with the limit in its message */
export type EnforceRowLimit = (
  trx: Trx,
  caller: Pick<Caller, "organizationId">,
  counted: CountedRows,
  added?: number,
) => Promise<void>;

/** Condition of the 409 response, as shown in the API reference. */
export const ROW_LIMIT_CONFLICT =
  "the organization has reached, or would exceed, its limit `rowsPerResource`";

const MAX_REMEMBERED = 100_000;
/** After a count, one in `UNCOUNTED_PART` of the remaining rows can be created without a new count, up to `MOST_UNCOUNTED`. */
const UNCOUNTED_PART = 20;
const MOST_UNCOUNTED = 1_000;

/**
 * Creates the check for the limit on rows.
 *
 * Counting rows on every creation would be slow. After a count, a twentieth of the remaining rows may be created without
 * another count. N gateways may therefore together exceed the limit by N twentieths of the remaining rows.
 *
 * @param mostOf returns an organization's limit, or `undefined` when it has none
 */
export function createRowLimit(mostOf: (organizationId: string) => number | undefined): EnforceRowLimit {
  const uncounted = new LRUCache<string, { readonly most: number; readonly left: number }>(
    upToEntries(MAX_REMEMBERED),
  );
  return async (trx, { organizationId }, { table, words, inside, omitsSystem, omitsAgents }, added = 1) => {
    const most = mostOf(organizationId);
    if (most === undefined || added === 0) return;
    const key = `${table} ${organizationId}`;
    const known = uncounted.get(key);
    if (known !== undefined && known.most === most && known.left >= added) {
      uncounted.set(key, { most, left: known.left - added });
      return;
    }
    const rows = inside
      ? sql`${sql.table(table)} AS r JOIN ${sql.table(inside.table)} AS o ON o.id = r.${sql.ref(inside.column)}`
      : sql`${sql.table(table)} AS o`;
    const own = omitsSystem ? sql`AND NOT o.is_system` : sql``;
    const made = omitsAgents ? sql`AND r.agent IS NULL` : sql``;
    const {
      rows: [found],
    } = await sql<{ readonly count: number }>`
      SELECT count(*) AS count
      FROM (SELECT FROM ${rows} WHERE o.organization_id = ${organizationId} ${own} ${made} LIMIT ${most}) AS counted`.execute(
      trx,
    );
    const count = Number(found?.count ?? 0);
    if (count >= most)
      throw conflict(
        `The organization has reached its rowsPerResource limit of ${most} (${words}). Delete some rows, or ask the operator to raise the limit.`,
      );
    if (count + added > most)
      throw conflict(
        `Adding ${added} rows to the existing ${count} would exceed the organization's rowsPerResource limit of ${most} (${words}).`,
      );
    const free = Math.floor((most - count - added) / UNCOUNTED_PART);
    uncounted.set(key, { most, left: Math.min(MOST_UNCOUNTED, free) });
  };
}
