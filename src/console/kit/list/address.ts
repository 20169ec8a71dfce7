import { useRef } from "preact/hooks";
import { useLocation } from "preact-iso";

type Next = Readonly<Record<string, string | undefined>>;

/** Hook that reads and changes the query string of the URL. A URL with an open detail panel can therefore be shared. */
export function useAddress(): {
  readonly query: Readonly<Record<string, string>>;
  /** Returns the URL with changed query parameters. `undefined` removes a parameter. */
  readonly hrefWith: (next: Next) => string;
  readonly go: (next: Next, options?: { readonly replace?: boolean }) => void;
} {
  const { path, route } = useLocation();
  const query = useViewQuery();
  const hrefWith = (next: Next): string => {
    const search = new URLSearchParams(query);
    for (const [name, value] of Object.entries(next)) {
      if (value === undefined || value === "") search.delete(name);
      else search.set(name, value);
    }
    const text = search.toString();
    return text === "" ? path : `${path}?${text}`;
  };
  return { query, hrefWith, go: (next, { replace = false } = {}) => route(hrefWith(next), replace) };
}

/**
 * Hook that returns the query string of the current view. While the next view loads, the current view keeps its own
 * query, although the URL has already changed.
 */
export function useViewQuery(): Readonly<Record<string, string>> {
  const { path, query } = useLocation();
  // Switching the app does not change the view.
  const view = path.replace(/^(\/console\/apps)\/[^/]+\//, "$1/*/");
  const own = useRef({ view, query });
  if (own.current.view === view) own.current.query = query;
  return own.current.query;
}
