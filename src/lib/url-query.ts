/**
 * Adds parameters to the query of a URL. `URLSearchParams` would encode the whole query again: `%20` as `+`, `flag` as `flag=`. Some servers
 * and signatures depend on the exact text, so existing parameters keep theirs.
 */
export function appendToQuery(url: URL, parameters: Iterable<readonly [name: string, value: string]>): void {
  const added = Array.from(parameters, ([name, value]) => `${encode(name)}=${encode(value)}`);
  if (added.length > 0) url.search = [url.search.slice(1), ...added].filter((part) => part !== "").join("&");
}

/** Removes all parameters with one of the names, and leaves the others as they are. */
export function removeFromQuery(url: URL, names: readonly string[]): void {
  const parts = url.search.slice(1).split("&");
  const kept = parts.filter((part) => !names.includes(parameterName(part)));
  if (kept.length < parts.length) url.search = kept.join("&");
}

const parameterName = (part: string): string => new URLSearchParams(part).keys().next().value ?? "";

/** `toWellFormed` is needed because `encodeURIComponent` throws on lone surrogates, which a server's token may contain. */
const encode = (text: string): string => encodeURIComponent(text.toWellFormed());
