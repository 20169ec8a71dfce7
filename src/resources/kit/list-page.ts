import { type SelectQueryBuilder, sql } from "kysely";
import type { Listed, Page } from "../../http/page.ts";

/**
 * Returns a page of the query's rows with the total count. The default order is by creation time, then id.
 *
 * One query returns rows and count. A page beyond the end of the list has no rows, so it needs a second query for the
 * count.
 */
export async function listPage<DB, TB extends keyof DB, O>(
  query: SelectQueryBuilder<DB, TB, O>,
  { limit, offset }: Page,
  order: readonly string[] = ["createdAt", "id"],
): Promise<Listed<O>> {
  const page = query.select(counted(query).as("listTotal")).limit(limit).offset(offset);
  const rows = await order.reduce((all, column) => all.orderBy(sql.ref(column)), page).execute();
  const [first] = rows as unknown as readonly { readonly listTotal: number }[];
  if (first === undefined && offset > 0) return { items: [], total: await countRows(query) };
  const items = rows.map(({ listTotal: _, ...row }: { readonly listTotal?: unknown }) => row as O);
  return { items, total: first?.listTotal ?? 0 };
}

export async function countRows<DB, TB extends keyof DB, O>(
  query: SelectQueryBuilder<DB, TB, O>,
): Promise<number> {
  const { n } = (await counted(query).executeTakeFirstOrThrow()) as unknown as { readonly n: number };
  return n;
}

const counted = <DB, TB extends keyof DB, O>(query: SelectQueryBuilder<DB, TB, O>) =>
  query
    .clearSelect()
    .clearOrderBy()
    .select((eb) => eb.fn.countAll<number>().as("n"));

/** Returns a page of a list that is complete in memory. Without `limit`, the page is the rest of the list. */
export const slicePage = <T>(
  all: readonly T[],
  { limit = all.length, offset }: { readonly limit?: number | undefined; readonly offset: number },
): Listed<T> => ({ items: all.slice(offset, offset + limit), total: all.length });

export const mapPage = <R, E>({ items, total }: Listed<R>, render: (row: R) => E): Listed<E> => ({
  items: items.map((row) => render(row)),
  total,
});

/** Removes undefined filters, because `eb.and(…)` does not accept them. */
export const omitUndefined = <F extends object>(filters: F): { [K in keyof F]?: Exclude<F[K], undefined> } =>
  Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== undefined)) as F;
