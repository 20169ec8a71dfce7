import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, isAbort, toApiError } from "./api-error.ts";
import { type Answer, api, type Gets, type ListPage, type Parameters, type Row } from "./client.ts";

export interface Loaded<T> {
  /** Result of the last successful load. It remains set during a reload. */
  readonly data: T | undefined;
  /** Failure of the last attempt. */
  readonly error: ApiError | undefined;
  readonly reload: () => void;
}

type State<T> = Omit<Loaded<T>, "reload">;

interface Options {
  readonly everyMs?: number | undefined;
}

/**
 * Hook that loads data when the view appears and when an entry of `needs` changes. A change aborts the pending request.
 * With `everyMs`, it also reloads that long after each response, while the page is visible.
 */
export function useLoad<T>(
  load: (signal: AbortSignal) => Promise<T>,
  needs: readonly unknown[],
  { everyMs }: Options = {},
): Loaded<T> {
  const [state, setState] = useState<State<T>>({ data: undefined, error: undefined });
  const [reloads, setReloads] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  const key = useRef<readonly unknown[]>(needs);
  useEffect(() => {
    const aborting = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const isSame = haveSameItems(key.current, needs);
    key.current = needs;
    setState(({ data }) => ({ data: isSame ? data : undefined, error: undefined }));
    const run = async (): Promise<void> => {
      try {
        const data = await latest.current(aborting.signal);
        if (!aborting.signal.aborted) setState({ data, error: undefined });
      } catch (error) {
        if (aborting.signal.aborted || isAbort(error)) return;
        setState(({ data }) => ({ data, error: toApiError(error) }));
      }
      if (everyMs !== undefined && !aborting.signal.aborted) timer = setTimeout(reloadWhenVisible, everyMs);
    };
    const reloadWhenVisible = (): void => {
      if (document.hidden)
        document.addEventListener("visibilitychange", reloadWhenVisible, {
          once: true,
          signal: aborting.signal,
        });
      else void run();
    };
    void run();
    return () => {
      aborting.abort();
      clearTimeout(timer);
    };
  }, [...needs, reloads, everyMs]);
  const reload = useCallback(() => setReloads((before) => before + 1), []);
  return { ...state, reload };
}

/** Hook that loads a resource of the API with `useLoad`. */
export const useGet = <P extends keyof Gets>(
  path: P,
  request: Parameters<Gets[P]>,
  options?: Options,
): Loaded<Answer<Gets[P]>> =>
  useLoad((signal) => api.get(path, { ...request, signal }), [path, JSON.stringify(request)], options);

/** Hook that loads a page of a list of the API with `useLoad`. */
export const useList = <P extends keyof Gets>(
  path: P,
  request: Parameters<Gets[P]>,
  options?: Options,
): Loaded<ListPage<Row<Gets[P]>>> =>
  useLoad((signal) => api.list(path, { ...request, signal }), [path, JSON.stringify(request)], options);

const haveSameItems = (a: readonly unknown[], b: readonly unknown[]): boolean =>
  a.length === b.length && a.every((one, index) => Object.is(one, b[index]));
