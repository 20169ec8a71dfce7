import { sql } from "kysely";
import { LRUCache } from "lru-cache";
import type { Trx } from "../../data/database.ts";
import type { Caller } from "../../http/context.ts";
import { conflict } from "../../http/problem.ts";
import { upToEntries } from "../../lib/up-to-entries.ts";

/** Rows that are counted by the organization, or where they are inside others, by that of those. */
export interface CountedRows {
  readonly table: string;
  readonly words: string;
  /** The table that has the organization, and the column that names its row. */
  readonly inside?: { readonly table: string; readonly column: string } | undefined;
  /** The system app counts for nothing. */
  readonly omitsSystem?: true;
}

/** Refuses rows (one by default) beyond what an organization may have. @throws ApiError 409 that names the limit */
export type EnforceRowLimit = (
  trx: Trx,
  caller: Pick<Caller, "organizationId">,
  counted: CountedRows,
  added?: number,
) => Promise<void>;

/** When a creation answers 409 for it. */
export const ROW_LIMIT_CONFLICT =
  "the organization has, or would have, more than it may (`rowsPerResource` of its limits)";

const MAX_REMEMBERED = 100_000;
/** Of what is left, the part that is given out before it is counted again; and the most of them. */
const UNCOUNTED_PART = 20;
const MOST_UNCOUNTED = 1_000;

/**
 * Rows are not counted at each creation: a twentieth of what is left is given out between two counts, so that n gateways may
 * together exceed the limit by n twentieths of what was left.
 *
 * @param mostOf what an organization may have; undefined: any number
 */
export function createRowLimit(mostOf: (organizationId: string) => number | undefined): EnforceRowLimit {
  const uncounted = new LRUCache<string, { readonly most: number; readonly left: number }>(
    upToEntries(MAX_REMEMBERED),
  );
  return async (trx, { organizationId }, { table, words, inside, omitsSystem }, added = 1) => {
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
    const {
      rows: [found],
    } = await sql<{ readonly count: number }>`
      SELECT count(*) AS count
      FROM (SELECT FROM ${rows} WHERE o.organization_id = ${organizationId} ${own} LIMIT ${most}) AS counted`.execute(
      trx,
    );
    const count = Number(found?.count ?? 0);
    if (count >= most)
      throw conflict(
        `The organization has ${most} of ${words} already, as many as it may (rowsPerResource of its limits).`,
      );
    if (count + added > most)
      throw conflict(
        `The organization has ${count} of ${words}, and may have ${most} (rowsPerResource of its limits): ${added} more are too many.`,
      );
    const free = Math.floor((most - count - added) / UNCOUNTED_PART);
    uncounted.set(key, { most, left: Math.min(MOST_UNCOUNTED, free) });
  };
}
