import { useRef } from "preact/hooks";
import { useLocation } from "preact-iso";

type Next = Readonly<Record<string, string | undefined>>;

/** What the address says beside its path, and a way to change it: what is open beside a list has an address to share, too. */
export function useAddress(): {
  readonly query: Readonly<Record<string, string>>;
  /** The address with these changed; undefined leaves one out. */
  readonly hrefWith: (next: Next) => string;
  readonly go: (next: Next, options?: { readonly replace?: boolean }) => void;
} {
  const { path, route } = useLocation();
  const query = useOwnQuery();
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
 * What the address says beside its path, for the view that it was of when this one appeared. A view stays in sight while the next
 * one is loaded, and what the address says by then is not meant for it.
 */
export function useOwnQuery(): Readonly<Record<string, string>> {
  const { path, query } = useLocation();
  // The same view of another app is the same view.
  const view = path.replace(/^(\/console\/apps)\/[^/]+\//, "$1/*/");
  const own = useRef({ view, query });
  if (own.current.view === view) own.current.query = query;
  return own.current.query;
}
