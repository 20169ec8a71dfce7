import { signal } from "@preact/signals";
import { fillPath, formatQuery } from "../../api/curl.ts";

/** Paths of the views that the signed-in caller may open. */
export const knownViews = signal<ReadonlySet<string>>(new Set());

/**
 * Returns the URL of a view: `viewHref("/apps/:appId/channels", { appId }, { channel })`. Returns `undefined` if the
 * caller may not open the view, so that no link is shown.
 */
export function viewHref(
  path: string,
  params: Readonly<Record<string, string>> = {},
  query: Readonly<Record<string, string | number | undefined>> = {},
): string | undefined {
  if (!knownViews.value.has(path)) return undefined;
  return `/console${fillPath(path.replace(/:(\w+)/g, "{$1}"), params)}${formatQuery(query)}`;
}
