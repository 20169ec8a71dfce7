import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, isAbort, toApiError } from "../../api/api-error.ts";
import { sendForList } from "../../api/client.ts";
import { formatQuery } from "../../api/curl.ts";
import type { ListPage } from "../../api/list-page.ts";
import {
  type CursorPages,
  type CursorRequest,
  createCursorPages,
  MAX_PAGES,
  PAGE_ROWS,
} from "./cursor-pages.ts";

export interface Pages<Row> {
  /** `undefined` until the first page is loaded. */
  readonly count: number | undefined;
  /** Total of the API, if it differs from `count`. */
  readonly total?: number | undefined;
  /** Whether `count` includes a row that stands for the next page. */
  readonly hasMore?: boolean;
  /** Whether the list is longer than `count`, which is the maximum. */
  readonly isCut?: boolean;
  readonly rowAt: (index: number) => Row | undefined;
  readonly onRange: (first: number, last: number) => void;
  readonly error: ApiError | undefined;
  readonly reload: () => void;
}

/** Hook that loads the visible pages of an API list, for `Table`. When the path or query changes, it loads them again. */
export function usePages<Row>(
  path: string,
  query: Readonly<Record<string, string | undefined>> = {},
): Pages<Row> {
  const needs = [path, JSON.stringify(query)];
  const [reloads, setReloads] = useState(0);
  const [count, setCount] = useState<number>();
  const [error, setError] = useState<ApiError>();
  const [, redraw] = useState(0);
  const pages = useRef(new Map<number, readonly Row[] | "loading">());
  const aborting = useRef(new AbortController());
  const latest = useRef({ path, query });
  latest.current = { path, query };

  const loadPage = useCallback(async (page: number) => {
    const { current: cached } = pages;
    const { signal } = aborting.current;
    if (cached.has(page)) return;
    cached.set(page, "loading");
    try {
      const asked = { ...latest.current.query, limit: PAGE_ROWS, offset: page * PAGE_ROWS };
      const { rows, total } = await sendForList<Row>(latest.current.path + formatQuery(asked), { signal });
      if (signal.aborted) return;
      cached.set(page, rows);
      for (const old of cached.keys()) {
        if (cached.size <= MAX_PAGES) break;
        if (old !== page) cached.delete(old);
      }
      setCount(total);
      setError(undefined);
      redraw((before) => before + 1);
    } catch (error) {
      if (signal.aborted || isAbort(error)) return;
      cached.delete(page);
      setError(toApiError(error));
    }
  }, []);

  useEffect(() => {
    aborting.current = new AbortController();
    pages.current = new Map();
    setError(undefined);
    void loadPage(0);
    return () => aborting.current.abort();
  }, [...needs, reloads]);
  // Reset the count when the list changes, because the old count does not apply to the new list.
  useEffect(() => () => setCount(undefined), needs);

  return {
    count,
    rowAt(index) {
      const page = pages.current.get(Math.floor(index / PAGE_ROWS));
      return page === undefined || page === "loading" ? undefined : page[index % PAGE_ROWS];
    },
    onRange: useCallback((first: number, last: number) => {
      if (last === 0) return;
      for (let page = Math.floor(first / PAGE_ROWS); page <= Math.floor((last - 1) / PAGE_ROWS); page++)
        void loadPage(page);
    }, []),
    error,
    reload: useCallback(() => setReloads((before) => before + 1), []),
  };
}

/**
 * Hook that loads a list that is paged by a cursor, for `Table`. When an entry of `needs` changes, it starts again.
 *
 * @param canSkip whether the total counts the rows of this list and the API accepts `offset`, so that the user can jump to any row.
 *   Otherwise the next page is loaded when the user scrolls to the end of the loaded rows.
 */
export function useNewest<Row>(
  load: (page: CursorRequest, signal: AbortSignal) => Promise<ListPage<Row>>,
  needs: readonly unknown[],
  canSkip = false,
): Pages<Row> {
  const [reloads, setReloads] = useState(0);
  const [shown, setShown] = useState<{ readonly pages: CursorPages<Row> }>();
  const [error, setError] = useState<ApiError>();
  const latest = useRef(load);
  latest.current = load;

  useEffect(() => {
    const aborting = new AbortController();
    const { signal } = aborting;
    setError(undefined);
    const pages = createCursorPages<Row>({
      load: (page) => latest.current(page, signal),
      canSkip,
      onChange() {
        if (signal.aborted) return;
        setError(undefined);
        // A new object, so that the list is drawn again.
        setShown({ pages });
      },
      onError(error) {
        if (!signal.aborted && !isAbort(error)) setError(toApiError(error));
      },
    });
    pages.want(0, 1);
    return () => aborting.abort();
  }, [...needs, canSkip, reloads]);
  useEffect(() => () => setShown(undefined), needs);

  const pages = shown?.pages;
  return {
    count: pages?.count(),
    ...(pages && { total: pages.total() }),
    hasMore: pages?.hasMore() ?? false,
    isCut: pages?.isCut() ?? false,
    rowAt: (index) => pages?.rowAt(index),
    onRange: pages?.want ?? ignoreRange,
    error,
    reload: useCallback(() => setReloads((before) => before + 1), []),
  };
}

const ignoreRange = (): void => {};

/** Reverses the order of the rows. The API lists the oldest first, but users expect the newest log entries first. */
export function newestFirst<Row>(pages: Pages<Row>): Pages<Row> {
  const { count = 0, rowAt, onRange } = pages;
  return {
    ...pages,
    rowAt: (index) => rowAt(count - 1 - index),
    onRange: (first, last) => onRange(Math.max(0, count - last), count - first),
  };
}
