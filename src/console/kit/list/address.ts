import { useRef } from "preact/hooks";
import { useLocation } from "preact-iso";

type Next = Readonly<Record<string, string | undefined>>;

/** Reads and changes the query of the address, so that an open detail panel also has an address to share. */
export function useAddress(): {
  readonly query: Readonly<Record<string, string>>;
  /** Returns the address with changed parameters. `undefined` removes a parameter. */
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
 * Returns the query of the address for the current view. While the next view loads, the address already has
 * the next view's query. The old view is still visible then, so it keeps its own last query.
 */
export function useViewQuery(): Readonly<Record<string, string>> {
  const { path, query } = useLocation();
  // Switching the app does not change the view.
  const view = path.replace(/^(\/console\/apps)\/[^/]+\//, "$1/*/");
  const own = useRef({ view, query });
  if (own.current.view === view) own.current.query = query;
  return own.current.query;
}
