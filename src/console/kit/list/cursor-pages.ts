import type { ListPage } from "../../api/list-page.ts";

/** Number of rows of a page. */
export const PAGE_ROWS = 100;
/** Maximum number of pages in memory. The pages farthest from the visible rows are dropped, and loaded again when they become visible. */
export const MAX_PAGES = 40;
/** Maximum number of rows of a list. A longer list would be higher than the highest element of a browser (17.9 million pixels in Firefox). */
export const MAX_ROWS = 500_000;
/** Maximum number of rows that one request skips. */
export const MAX_SKIPPED = 10_000;

export interface CursorRequest {
  readonly limit: number;
  readonly cursor?: string;
  /** Number of rows to skip after the cursor. Only for lists that can be skipped through. */
  readonly offset?: number;
}

export interface CursorPages<Row> {
  /** Number of rows, at most `MAX_ROWS`. For a list of unknown length, the loaded ones and one more that stands for the next page. */
  readonly count: () => number | undefined;
  /** Whether the list has more than `MAX_ROWS` rows. */
  readonly isCut: () => boolean;
  /** Total of the first response. */
  readonly total: () => number | undefined;
  /** Whether the list has further rows that are not counted. */
  readonly hasMore: () => boolean;
  readonly rowAt: (index: number) => Row | undefined;
  /** Loads the pages of these rows, one request at a time. A later call replaces the range of an earlier one. */
  readonly want: (first: number, last: number) => void;
}

interface Options<Row> {
  readonly load: (request: CursorRequest) => Promise<ListPage<Row>>;
  /** Whether the total counts the rows of this list and `load` supports `offset`. The list then has its full length at once. */
  readonly canSkip: boolean;
  readonly onChange: () => void;
  readonly onError: (error: unknown) => void;
}

/**
 * Creates the pages of a list that is paged by a cursor. Keeps the cursors of all visited pages, but the rows of `MAX_PAGES` only. To reach a
 * row far from all visited pages, it skips up to `MAX_SKIPPED` rows per request.
 */
export function createCursorPages<Row>({ load, canSkip, onChange, onError }: Options<Row>): CursorPages<Row> {
  const pages = new Map<number, readonly Row[]>();
  const cursors = new Map<number, string | undefined>([[0, undefined]]);
  let wanted = { first: 0, last: 0 };
  let isLoading = false;
  let total: number | undefined;
  /** Number of rows, once the last page is known. */
  let end: number | undefined;
  /** Number of the page after the last one that is known to exist. */
  let nextPage = 0;

  const read = async (request: CursorRequest): Promise<ListPage<Row>> => {
    const { cursor, offset = 0, limit } = request;
    const page = await load({
      limit,
      ...(cursor !== undefined && { cursor }),
      ...(offset > 0 && { offset }),
    });
    total ??= page.total;
    return page;
  };

  /** Loads a page, or a cursor that is closer to it. */
  async function approach(page: number): Promise<void> {
    let known = page;
    while (!cursors.has(known)) known--;
    const cursor = cursors.get(known);
    const from = cursor === undefined ? {} : { cursor };
    const skipped = (page - known) * PAGE_ROWS;
    if (skipped <= MAX_SKIPPED) {
      await fill(page, { ...from, offset: skipped }, known);
      return;
    }
    const { rows, next, scanned = rows.length } = await read({ ...from, offset: MAX_SKIPPED - 1, limit: 1 });
    if (next === undefined) end = known * PAGE_ROWS + scanned;
    else cursors.set(known + MAX_SKIPPED / PAGE_ROWS, next);
  }

  /** Loads the rows of a page. A response can have fewer rows than requested, because the API limits its size. */
  async function fill(
    page: number,
    { cursor, offset }: Omit<CursorRequest, "limit">,
    known: number,
  ): Promise<void> {
    let {
      rows,
      next,
      scanned = rows.length,
    } = await read({
      limit: PAGE_ROWS,
      ...(cursor !== undefined && { cursor }),
      ...(offset !== undefined && { offset }),
    });
    while (next !== undefined && rows.length < PAGE_ROWS) {
      const more = await read({ limit: PAGE_ROWS - rows.length, cursor: next });
      rows = [...rows, ...more.rows];
      ({ next } = more);
    }
    pages.set(page, rows);
    const start = page * PAGE_ROWS;
    if (next !== undefined) {
      cursors.set(page + 1, next);
      nextPage = Math.max(nextPage, page + 1);
      if (end !== undefined && end <= start + PAGE_ROWS) end = undefined;
    } else {
      // Without rows, the list has become shorter than the skipped part.
      end = rows.length > 0 ? start + rows.length : Math.min(start, known * PAGE_ROWS + scanned);
      nextPage = Math.ceil(end / PAGE_ROWS);
    }
  }

  function findMissing(): number | undefined {
    const last = end === undefined ? wanted.last : Math.min(wanted.last, end);
    for (let page = Math.floor(wanted.first / PAGE_ROWS); page * PAGE_ROWS < last; page++)
      if (!pages.has(page)) return page;
    return undefined;
  }

  function dropFarPages(): void {
    const center = (wanted.first + wanted.last) / 2 / PAGE_ROWS;
    // The first page has no cursor. Loaded again, it would contain newer rows, and the next page would repeat some of its rows.
    const [, ...others] = [...pages.keys()].sort((a, b) => a - b);
    const byDistance = others.sort((a, b) => Math.abs(a - center) - Math.abs(b - center));
    for (const page of byDistance.slice(MAX_PAGES - 1)) pages.delete(page);
  }

  async function run(): Promise<void> {
    if (isLoading) return;
    isLoading = true;
    try {
      for (let page = findMissing(); page !== undefined; page = findMissing()) {
        await approach(page);
        dropFarPages();
        onChange();
      }
    } catch (error) {
      onError(error);
    } finally {
      isLoading = false;
    }
  }

  function findLength(): number | undefined {
    if (end !== undefined) return end;
    if (canSkip) return total;
    return nextPage === 0 ? undefined : nextPage * PAGE_ROWS + 1;
  }

  return {
    count() {
      const length = findLength();
      return length && Math.min(length, MAX_ROWS);
    },
    isCut: () => (findLength() ?? 0) > MAX_ROWS,
    total: () => total,
    hasMore: () => end === undefined && !canSkip,
    rowAt: (index) => pages.get(Math.floor(index / PAGE_ROWS))?.[index % PAGE_ROWS],
    want(first, last) {
      wanted = { first, last };
      void run();
    },
  };
}
