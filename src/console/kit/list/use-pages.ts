import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, isAbort, toApiError } from "../../api/api-error.ts";
import type { ListPage } from "../../api/client.ts";

export const PAGE_ROWS = 100;
/** Maximum number of pages in memory. Dropped pages are loaded again when they become visible. */
const MAX_PAGES = 40;

export interface Pages<Row> {
  /** `undefined` until the first page is loaded. */
  readonly count: number | undefined;
  /** Number of rows of the whole list, if it differs from `count`. */
  readonly total?: number;
  /** Whether `count` includes a row that stands for the next page. */
  readonly hasMore?: boolean;
  readonly rowAt: (index: number) => Row | undefined;
  readonly onRange: (first: number, last: number) => void;
  readonly error: ApiError | undefined;
  readonly reload: () => void;
}

/** Hook that loads the visible pages of an API list, for `Table`. When an entry of `needs` changes, it loads them again. */
export function usePages<Row>(
  load: (
    page: { readonly limit: number; readonly offset: number },
    signal: AbortSignal,
  ) => Promise<ListPage<Row>>,
  needs: readonly unknown[],
): Pages<Row> {
  const [reloads, setReloads] = useState(0);
  const [count, setCount] = useState<number>();
  const [error, setError] = useState<ApiError>();
  const [, redraw] = useState(0);
  const pages = useRef(new Map<number, readonly Row[] | "loading">());
  const aborting = useRef(new AbortController());
  const latest = useRef(load);
  latest.current = load;

  const loadPage = useCallback(async (page: number) => {
    const { current: cached } = pages;
    const { signal } = aborting.current;
    if (cached.has(page)) return;
    cached.set(page, "loading");
    try {
      const { rows, total } = await latest.current({ limit: PAGE_ROWS, offset: page * PAGE_ROWS }, signal);
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

interface Loaded<Row> {
  readonly rows: readonly Row[];
  readonly total: number;
  readonly next: string | undefined;
}

/**
 * Hook that loads a list that is paged by a cursor, for `Table`. Loads the next page when the user scrolls to the end of the loaded
 * rows. When an entry of `needs` changes, it starts again.
 */
export function useNewest<Row>(
  load: (
    page: { readonly limit: number; readonly cursor?: string },
    signal: AbortSignal,
  ) => Promise<ListPage<Row>>,
  needs: readonly unknown[],
): Pages<Row> {
  const [reloads, setReloads] = useState(0);
  const [loaded, setLoaded] = useState<Loaded<Row>>();
  const [error, setError] = useState<ApiError>();
  const aborting = useRef(new AbortController());
  const loadingCursor = useRef<string | undefined>(undefined);
  const latest = useRef({ load, loaded });
  latest.current = { load, loaded };

  const loadNext = useCallback(async (before: Loaded<Row> | undefined) => {
    const { signal } = aborting.current;
    const cursor = before?.next;
    try {
      const page = { limit: PAGE_ROWS, ...(cursor !== undefined && { cursor }) };
      const { rows, total, next } = await latest.current.load(page, signal);
      if (signal.aborted) return;
      setLoaded({ rows: [...(before?.rows ?? []), ...rows], total, next });
      setError(undefined);
    } catch (error) {
      if (signal.aborted || isAbort(error)) return;
      loadingCursor.current = undefined;
      setError(toApiError(error));
    }
  }, []);

  useEffect(() => {
    aborting.current = new AbortController();
    loadingCursor.current = undefined;
    setError(undefined);
    void loadNext(undefined);
    return () => aborting.current.abort();
  }, [...needs, reloads]);
  useEffect(() => () => setLoaded(undefined), needs);

  const { rows = [], total = 0, next } = loaded ?? {};
  return {
    // One more row stands for the next page. It loads the page when it becomes visible.
    count: loaded && rows.length + (next === undefined ? 0 : 1),
    total,
    hasMore: next !== undefined,
    rowAt: (index) => rows[index],
    onRange: useCallback((_: number, last: number) => {
      const { loaded } = latest.current;
      if (loaded?.next === undefined || last <= loaded.rows.length) return;
      if (loadingCursor.current === loaded.next) return;
      loadingCursor.current = loaded.next;
      void loadNext(loaded);
    }, []),
    error,
    reload: useCallback(() => setReloads((before) => before + 1), []),
  };
}

/** Reverses the order of the rows. The API lists the oldest first, but users expect the newest log entries first. */
export function newestFirst<Row>(pages: Pages<Row>): Pages<Row> {
  const { count = 0, rowAt, onRange } = pages;
  return {
    ...pages,
    rowAt: (index) => rowAt(count - 1 - index),
    onRange: (first, last) => onRange(Math.max(0, count - last), count - first),
  };
}
