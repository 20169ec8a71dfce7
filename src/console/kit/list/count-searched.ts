/** Maximum number of rows of a page. A page of a list with a cursor can have fewer, because the API limits its size. */
export const PAGE_ROWS = 200;

interface Page {
  readonly rows: readonly unknown[];
  readonly total: number;
  /** Cursor of the next page. `undefined` on the last page, and in lists without cursors. */
  readonly next?: string | undefined;
}

/**
 * Returns how many rows a search has read after a page.
 *
 * @param before number of rows read before this page
 * @param isContinued whether the page was requested with a cursor
 */
export function countSearched(before: number, page: Page, isContinued: boolean): number {
  const { rows, total, next } = page;
  if (next !== undefined) return before + rows.length;
  // The last page of a list with a cursor completes the search, even if the list has become shorter in the meantime.
  return isContinued ? total : Math.min(total, before + PAGE_ROWS);
}
