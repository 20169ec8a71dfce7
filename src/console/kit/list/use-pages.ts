import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Part } from "../../api/client.ts";
import { type ApiProblem, isAbort, toProblem } from "../../api/problem.ts";

/** The most that one page of a list of the API may hold. */
export const PAGE_ROWS = 100;
/** Pages that are kept: what was scrolled past long ago is asked for again. */
const MAX_PAGES = 40;

export interface Pages<Row> {
  /** Undefined: not known yet. */
  readonly count: number | undefined;
  readonly rowAt: (index: number) => Row | undefined;
  readonly onRange: (first: number, last: number) => void;
  readonly problem: ApiProblem | undefined;
  readonly reload: () => void;
}

/**
 * The pages of a list of the API that are in sight, for `Table`. They are loaded anew when one of `needs` changes.
 */
export function usePages<Row>(
  load: (
    page: { readonly limit: number; readonly offset: number },
    signal: AbortSignal,
  ) => Promise<Part<Row>>,
  needs: readonly unknown[],
): Pages<Row> {
  const [turn, setTurn] = useState(0);
  const [count, setCount] = useState<number>();
  const [problem, setProblem] = useState<ApiProblem>();
  const [, redraw] = useState(0);
  const pages = useRef(new Map<number, readonly Row[] | "loading">());
  const aborting = useRef(new AbortController());
  const latest = useRef(load);
  latest.current = load;

  const loadPage = useCallback(async (page: number) => {
    const { current: kept } = pages;
    const { signal } = aborting.current;
    if (kept.has(page)) return;
    kept.set(page, "loading");
    try {
      const { rows, total } = await latest.current({ limit: PAGE_ROWS, offset: page * PAGE_ROWS }, signal);
      if (signal.aborted) return;
      kept.set(page, rows);
      for (const old of kept.keys()) {
        if (kept.size <= MAX_PAGES) break;
        if (old !== page) kept.delete(old);
      }
      setCount(total);
      setProblem(undefined);
      redraw((before) => before + 1);
    } catch (error) {
      if (signal.aborted || isAbort(error)) return;
      kept.delete(page);
      setProblem(toProblem(error));
    }
  }, []);

  useEffect(() => {
    aborting.current = new AbortController();
    pages.current = new Map();
    setProblem(undefined);
    void loadPage(0);
    return () => aborting.current.abort();
  }, [...needs, turn]);
  // What was counted for other needs is not the count of these.
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
    problem,
    reload: useCallback(() => setTurn((before) => before + 1), []),
  };
}

/** The same from its end: lists of the API stand in order of creation, and of what happened the newest counts. */
export function newestFirst<Row>(pages: Pages<Row>): Pages<Row> {
  const { count = 0, rowAt, onRange } = pages;
  return {
    ...pages,
    rowAt: (index) => rowAt(count - 1 - index),
    onRange: (first, last) => onRange(Math.max(0, count - last), count - first),
  };
}
