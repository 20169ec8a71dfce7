import { type ListPage, sendForList } from "../../api/client.ts";
import { formatQuery } from "../../api/curl.ts";

export interface FailureRow {
  readonly id: string;
  readonly appId: string;
}

/** Failures with the same cause. */
export interface Group<Row> {
  readonly key: string;
  readonly appId: string;
  readonly newest: Row;
  /** Newest first. */
  readonly rows: readonly Row[];
  readonly firstAt: string;
  readonly lastAt: string;
}

/** Loads the newest rows of a list, at most about `maxRows`, and the number of all rows. */
export async function loadNewest<Row extends FailureRow>(
  path: string,
  query: Readonly<Record<string, string>>,
  { pageRows, maxRows }: { readonly pageRows: number; readonly maxRows: number },
  signal: AbortSignal,
): Promise<{ readonly rows: readonly Row[]; readonly total: number }> {
  const rows = new Map<string, Row>();
  let page: ListPage<Row>;
  let cursor: string | undefined;
  do {
    page = await sendForList(path + formatQuery({ ...query, limit: pageRows, cursor }), { signal });
    for (const row of page.rows) rows.set(row.id, row);
    cursor = page.next;
  } while (cursor !== undefined && rows.size < maxRows);
  return { rows: [...rows.values()], total: page.total };
}

/** Groups rows by cause. The group with the latest failure comes first. */
export const groupRows = <Row extends FailureRow>(
  rows: readonly Row[],
  causeOf: (row: Row) => readonly string[],
  timesOf: (row: Row) => readonly [firstAt: string, lastAt: string],
): readonly Group<Row>[] =>
  [...Map.groupBy(rows, (row) => causeOf(row).join("~"))]
    .flatMap(([key, inside]) => {
      const [newest] = inside;
      if (newest === undefined) return [];
      const times = inside.map(timesOf);
      const firstAt = times.map(([first]) => first).reduce((a, b) => (a < b ? a : b));
      const lastAt = times.map(([, last]) => last).reduce((a, b) => (a > b ? a : b));
      return [{ key, appId: newest.appId, newest, rows: inside, firstAt, lastAt }];
    })
    .sort((a, b) => (a.lastAt < b.lastAt ? 1 : -1));
