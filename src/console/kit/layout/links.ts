import { signal } from "@preact/signals";
import { fillPath, queryOf } from "../../api/curl.ts";

/** The paths of the views that there are, and that this caller may see; the page tells them. */
export const knownViews = signal<ReadonlySet<string>>(new Set());

/**
 * The address of a view: `viewHref("/apps/:appId/quarantine", { appId }, { reason })`. Undefined: there is no such view for this
 * caller, and what would lead there is shown without a link.
 */
export function viewHref(
  path: string,
  params: Readonly<Record<string, string>> = {},
  query: Readonly<Record<string, string | number | undefined>> = {},
): string | undefined {
  if (!knownViews.value.has(path)) return undefined;
  return `/console${fillPath(path.replace(/:(\w+)/g, "{$1}"), params)}${queryOf(query)}`;
}
