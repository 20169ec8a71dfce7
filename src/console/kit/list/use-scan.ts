import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, isAbort, toApiError } from "../../api/api-error.ts";
import type { ListPage } from "../../api/list-page.ts";
import type { CursorRequest } from "./cursor-pages.ts";

export interface Scan<Row> {
  readonly rows: readonly Row[];
  readonly scanned: number;
  /** `undefined` until the first page is loaded, and if the number of rows to scan is unknown. */
  readonly total: number | undefined;
  readonly isRunning: boolean;
  readonly isComplete: boolean;
  readonly error: ApiError | undefined;
  /** Stops the running search. The user can continue it. */
  readonly stop: () => void;
  readonly continueSearch: () => void;
}

const PAGE_ROWS = 200;
/** Number of found rows after which the search pauses. */
const MAX_FOUND = 500;

interface State<Row> extends Omit<Scan<Row>, "stop" | "continueSearch"> {
  readonly cursor: string | undefined;
}

const INITIAL = {
  rows: [],
  scanned: 0,
  total: undefined,
  isRunning: true,
  isComplete: false,
  error: undefined,
  cursor: undefined,
} as const;

interface Options<Row> {
  /** Loads a page. Its `scanned` is the number of rows that the API has searched for it. */
  readonly load: (
    page: Pick<CursorRequest, "limit" | "cursor">,
    signal: AbortSignal,
  ) => Promise<ListPage<Row>>;
  /** Filter for the rows, if the API cannot filter them. */
  readonly fits?: (row: Row) => boolean;
  /** Number of scanned rows after which the search pauses. The user can continue it. */
  readonly maxScanned: number;
}

/** Hook that searches an API list that is paged by a cursor. The search starts again when an entry of `needs` changes. */
export function useScan<Row>(
  { load, fits = () => true, maxScanned }: Options<Row>,
  needs: readonly unknown[],
): Scan<Row> {
  const [state, setState] = useState<State<Row>>(INITIAL);
  const [runs, setRuns] = useState(0);
  const latest = useRef({ load, fits, state });
  latest.current = { load, fits, state };
  const aborting = useRef(new AbortController());
  const scannedNeeds = useRef<readonly unknown[]>([]);
  useEffect(() => {
    aborting.current = new AbortController();
    const { signal } = aborting.current;
    const isNew = runs === 0 || scannedNeeds.current.some((one, index) => !Object.is(one, needs[index]));
    scannedNeeds.current = needs;
    void run(isNew ? INITIAL : latest.current.state, latest.current.fits);
    return () => aborting.current.abort();

    async function run(from: State<Row>, isFit: (row: Row) => boolean): Promise<void> {
      let now: State<Row> = { ...from, isRunning: true, error: undefined };
      setState(now);
      const lastScanned = now.scanned + maxScanned;
      const lastFound = now.rows.length + MAX_FOUND;
      try {
        while (!now.isComplete && now.scanned < lastScanned && now.rows.length < lastFound) {
          const { cursor } = now;
          const page = { limit: PAGE_ROWS, ...(cursor !== undefined && { cursor }) };
          const { rows, total, next, scanned = rows.length } = await latest.current.load(page, signal);
          if (signal.aborted) return;
          now = {
            ...now,
            rows: [...now.rows, ...rows.filter(isFit)],
            scanned: now.scanned + scanned,
            total,
            cursor: next,
            isComplete: next === undefined,
          };
          setState(now);
        }
        setState({ ...now, isRunning: false });
      } catch (error) {
        if (!signal.aborted && !isAbort(error))
          setState({ ...now, isRunning: false, error: toApiError(error) });
      }
    }
  }, [...needs, runs]);
  return {
    ...state,
    stop: useCallback(() => {
      aborting.current.abort();
      setState((before) => ({ ...before, isRunning: false }));
    }, []),
    continueSearch: useCallback(() => setRuns((before) => before + 1), []),
  };
}
