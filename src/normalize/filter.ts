import type { SchemaViolation } from "../lib/json-schema/compiled-schema.ts";
import type { Fault } from "./fault.ts";
import type { ItemContext } from "./item.ts";
import { BODY_ROOT, type KindProfile, type RootSource } from "./profile.ts";

/** A value that a `when` sees next to the item, with its name. */
export type FilterRoot = readonly [name: string, root: RootSource];

/** Name under which a `when` sees the item. */
export const ITEM_NAME = "item";

/**
 * Returns the values that the `when` of a channel kind sees next to the item: those at which paths can start, except the body. The body
 * contains the other items, and would be sent to the worker thread again with each of them.
 */
export const getFilterRoots = ({ roots }: KindProfile): readonly FilterRoot[] =>
  [...roots].filter(([, root]) => root !== BODY_ROOT);

/** Returns the value that a `when` is evaluated on. Values that the delivery does not have are missing, as is the item if it is binary. */
export function createFilterInput(roots: readonly FilterRoot[], context: ItemContext): object {
  const input: Record<string, unknown> = {};
  for (const [name, root] of roots) {
    const value = root.valueIn(context);
    if (value !== undefined) input[name] = value;
  }
  const { value } = context.item;
  if (value !== undefined) input[ITEM_NAME] = value;
  return input;
}

/** Returns the fault of an item whose `when` cannot be evaluated. The item is quarantined, because ignoring it could lose an event. */
export const createFilterFault = ({ message }: SchemaViolation): Fault => ({
  reason: "filter_failed",
  path: "when",
  detail: `the value that \`when\` is evaluated on ${message}`,
});
