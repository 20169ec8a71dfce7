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
  const count = query.clearSelect().select((eb) => eb.fn.countAll<number>().as("n"));
  const page = query.select(count.as("listTotal")).limit(limit).offset(offset);
  const rows = await order.reduce((all, column) => all.orderBy(sql.ref(column)), page).execute();
  const [first] = rows as unknown as readonly { readonly listTotal: number }[];
  if (first === undefined && offset > 0) {
    const { n } = (await count.executeTakeFirstOrThrow()) as unknown as { readonly n: number };
    return { items: [], total: n };
  }
  const items = rows.map(({ listTotal: _, ...row }: { readonly listTotal?: unknown }) => row as O);
  return { items, total: first?.listTotal ?? 0 };
}

export const mapPage = <R, E>({ items, total }: Listed<R>, render: (row: R) => E): Listed<E> => ({
  items: items.map((row) => render(row)),
  total,
});

/** Removes undefined filters, because `eb.and(…)` does not accept them. */
export const omitUndefined = <F extends object>(filters: F): { [K in keyof F]?: Exclude<F[K], undefined> } =>
  Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== undefined)) as F;
