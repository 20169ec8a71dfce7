import type { ExplainedPath } from "../event/explained.ts";
import type { ItemFailure } from "../event/outcome.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import type { RulePath } from "./compile.ts";
import { explainValues, PATH_BUDGET } from "./explain.ts";
import { ItemReader } from "./item-reader.ts";
import { DELIVERY_PATH_BUDGET } from "./normalize.ts";
import { PathBudgetError } from "./paths/path.ts";
import { NO_ROUTE, openItems, toFailure, toRouteKey } from "./route-items.ts";
import type { RuleSet } from "./rule-set.ts";

export interface ExplainedRoute {
  /** Index of the item. `null` for the delivery as a whole. */
  readonly item: number | null;
  readonly key: string | undefined;
  /** The path that yields the route key. */
  readonly path: string | undefined;
  /** Every path of the route key with the values that it yields. */
  readonly paths: readonly ExplainedPath[];
  /** Why the item has no route key. */
  readonly failure: ItemFailure | undefined;
}

export type ExplainedRoutes =
  | { readonly kind: "explained"; readonly received: number; readonly items: readonly ExplainedRoute[] }
  | { readonly kind: "tooManyItems"; readonly limit: number };

/**
 * Returns the route keys of a delivery's items as `routeItems` finds them, with the values that each path yields.
 *
 * @param maxPaths maximum number of items whose path values are returned
 */
export function explainRoutes(
  rules: RuleSet,
  paths: readonly RulePath[],
  received: VerifiedDelivery,
  maxPaths: number,
): ExplainedRoutes {
  const budget = { left: DELIVERY_PATH_BUDGET };
  const opened = openItems(rules, paths, received, budget);
  if (opened.kind === "tooManyItems") return opened;
  if (opened.kind === "fault") {
    const item = {
      item: null,
      key: undefined,
      path: undefined,
      paths: [],
      failure: toFailure(opened.fault),
    };
    return { kind: "explained", received: 1, items: [item] };
  }
  const { delivery, body } = opened;
  // One budget for all items, because the values are evaluated on the main thread.
  const shown = { left: PATH_BUDGET };
  const items = opened.items.map((item, index): ExplainedRoute => {
    const none = { item: index, key: undefined, path: undefined, paths: [] };
    if ("fault" in item) return { ...none, failure: toFailure(item.fault) };
    const context = { delivery, body, item };
    const explained =
      index < maxPaths ? paths.map((path) => explainValues(path, new ItemReader(context, shown))) : [];
    const reader = new ItemReader(context, budget);
    try {
      for (const path of paths) {
        const key = toRouteKey(reader.values(path)[0]);
        if (key !== undefined)
          return { item: index, key, path: path.text, paths: explained, failure: undefined };
      }
    } catch (error) {
      if (!(error instanceof PathBudgetError)) throw error;
      const fault = { reason: "path_budget", detail: error.message } as const;
      return { ...none, paths: explained, failure: toFailure(fault) };
    }
    return { ...none, paths: explained, failure: toFailure(NO_ROUTE) };
  });
  return { kind: "explained", received: items.length, items };
}
