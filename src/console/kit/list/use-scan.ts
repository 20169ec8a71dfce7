import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, isAbort, toApiError } from "../../api/api-error.ts";
import type { ListPage } from "../../api/client.ts";
import { countSearched, PAGE_ROWS } from "./count-searched.ts";

export interface Scan<Row> {
  readonly rows: readonly Row[];
  readonly searched: number;
  /** `undefined` until the first page is loaded. */
  readonly total: number | undefined;
  readonly isRunning: boolean;
  readonly error: ApiError | undefined;
  /** Continues the search, or `undefined` if the search is running or complete. */
  readonly continueSearch: (() => void) | undefined;
}

/** Number of searched or found rows after which the search pauses. The user can continue it. */
const MAX_SEARCHED = 10_000;
const MAX_FOUND = 500;

interface State<Row> extends Omit<Scan<Row>, "continueSearch"> {
  /** Cursor of the next page, for lists that are paged by a cursor. */
  readonly cursor: string | undefined;
}

const INITIAL = {
  rows: [],
  searched: 0,
  total: undefined,
  isRunning: true,
  error: undefined,
  cursor: undefined,
} as const;

/**
 * Hook that searches an API list in the browser, for filters that the API lacks. The search restarts when an entry of
 * `needs` changes.
 */
export function useScan<Row>(
  load: (
    page: { readonly limit: number; readonly offset: number; readonly cursor?: string },
    signal: AbortSignal,
  ) => Promise<ListPage<Row>>,
  fits: (row: Row) => boolean,
  needs: readonly unknown[],
): Scan<Row> {
  const [state, setState] = useState<State<Row>>(INITIAL);
  const [runs, setRuns] = useState(0);
  const latest = useRef({ load, fits, state });
  latest.current = { load, fits, state };
  const searchedNeeds = useRef<readonly unknown[]>([]);
  useEffect(() => {
    const aborting = new AbortController();
    const { signal } = aborting;
    const isNew = runs === 0 || searchedNeeds.current.some((one, index) => !Object.is(one, needs[index]));
    searchedNeeds.current = needs;
    void run(isNew ? INITIAL : latest.current.state, latest.current.fits);
    return () => aborting.abort();

    async function run(from: State<Row>, isFit: (row: Row) => boolean): Promise<void> {
      let now: State<Row> = { ...from, isRunning: true, error: undefined };
      setState(now);
      const maxSearched = now.searched + MAX_SEARCHED;
      const maxFound = now.rows.length + MAX_FOUND;
      try {
        while (!signal.aborted && now.searched < maxSearched && now.rows.length < maxFound) {
          const { cursor } = now;
          const page = { limit: PAGE_ROWS, offset: now.searched, ...(cursor !== undefined && { cursor }) };
          const read = await latest.current.load(page, signal);
          if (signal.aborted) return;
          const { total, next } = read;
          const rows = [...now.rows, ...read.rows.filter(isFit)];
          const searched = countSearched(now.searched, read, cursor !== undefined);
          now = { ...now, rows, searched, total, cursor: next };
          if (isComplete(now)) break;
          setState(now);
        }
        if (!signal.aborted) setState({ ...now, isRunning: false });
      } catch (error) {
        if (!signal.aborted && !isAbort(error))
          setState({ ...now, isRunning: false, error: toApiError(error) });
      }
    }
  }, [...needs, runs]);
  const continueSearch = useCallback(() => setRuns((before) => before + 1), []);
  return { ...state, continueSearch: state.isRunning || isComplete(state) ? undefined : continueSearch };
}

const isComplete = ({ searched, total, cursor }: State<unknown>): boolean =>
  cursor === undefined && total !== undefined && searched >= total;
