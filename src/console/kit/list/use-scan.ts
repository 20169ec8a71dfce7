import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { ListPage } from "../../api/client.ts";
import { type ApiProblem, isAbort, toProblem } from "../../api/problem.ts";

export interface Scan<Row> {
  readonly rows: readonly Row[];
  readonly looked: number;
  /** `undefined` until the first page is loaded. */
  readonly total: number | undefined;
  readonly isRunning: boolean;
  readonly problem: ApiProblem | undefined;
  /** Continues the search. `undefined` when the search is complete or running. */
  readonly continueSearch: (() => void) | undefined;
}

const PAGE = 200;
/** Numbers of searched and found rows after which the user must continue the search. */
const MAX_LOOKED = 10_000;
const MAX_FOUND = 500;

interface State<Row> {
  readonly rows: readonly Row[];
  readonly looked: number;
  readonly total: number | undefined;
  readonly isRunning: boolean;
  readonly problem: ApiProblem | undefined;
}

const NOTHING = { rows: [], looked: 0, total: undefined, isRunning: true, problem: undefined } as const;

/**
 * Searches a list on the client, for filters that the API does not have. Does not search while `fits` is `undefined`. Restarts when
 * an entry of `needs` changes.
 */
export function useScan<Row>(
  load: (
    page: { readonly limit: number; readonly offset: number },
    signal: AbortSignal,
  ) => Promise<ListPage<Row>>,
  fits: ((row: Row) => boolean) | undefined,
  needs: readonly unknown[],
): Scan<Row> {
  const [state, setState] = useState<State<Row>>(NOTHING);
  const [turn, setTurn] = useState(0);
  const latest = useRef({ load, fits, state });
  latest.current = { load, fits, state };
  const begun = useRef<readonly unknown[]>([]);
  useEffect(() => {
    const { fits: isFitting } = latest.current;
    if (isFitting === undefined) return undefined;
    const aborting = new AbortController();
    const { signal } = aborting;
    const isNew = turn === 0 || begun.current.some((one, index) => !Object.is(one, needs[index]));
    begun.current = needs;
    void run(isNew ? NOTHING : latest.current.state, isFitting);
    return () => aborting.abort();

    async function run(from: State<Row>, isFit: (row: Row) => boolean): Promise<void> {
      let now: State<Row> = { ...from, isRunning: true, problem: undefined };
      setState(now);
      const most = now.looked + MAX_LOOKED;
      const enough = now.rows.length + MAX_FOUND;
      try {
        while (!signal.aborted && now.looked < most && now.rows.length < enough) {
          const { rows, total } = await latest.current.load({ limit: PAGE, offset: now.looked }, signal);
          if (signal.aborted) return;
          const looked = Math.min(total, now.looked + PAGE);
          now = { ...now, rows: [...now.rows, ...rows.filter(isFit)], looked, total };
          if (looked >= total) break;
          setState(now);
        }
        if (!signal.aborted) setState({ ...now, isRunning: false });
      } catch (error) {
        if (!signal.aborted && !isAbort(error))
          setState({ ...now, isRunning: false, problem: toProblem(error) });
      }
    }
  }, [...needs, fits === undefined, turn]);
  const continueSearch = useCallback(() => setTurn((before) => before + 1), []);
  const isOver = state.total !== undefined && state.looked >= state.total;
  return { ...state, continueSearch: state.isRunning || isOver ? undefined : continueSearch };
}
