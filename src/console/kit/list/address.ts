import { useLocation } from "preact-iso";

type Next = Readonly<Record<string, string | undefined>>;

/** What the address says beside its path, and a way to change it: what is open beside a list has an address to share, too. */
export function useAddress(): {
  readonly query: Readonly<Record<string, string>>;
  /** The address with these changed; undefined leaves one out. */
  readonly hrefWith: (next: Next) => string;
  readonly go: (next: Next, options?: { readonly replace?: boolean }) => void;
} {
  const { query, path, route } = useLocation();
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
