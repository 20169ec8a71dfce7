import type { JsonSchema } from "../compiled-schema.ts";
import { isNode, type References, type SchemaNode } from "./references.ts";
import { isDefinition, subschemasOf } from "./subschemas.ts";

/**
 * Largest `maxItems` for which `uniqueItems` counts as cheap. Every item is compared with every other item, except in arrays of
 * scalars.
 */
const MAX_COMPARED_ITEMS = 256;

/**
 * Computes the cost of a schema: the maximum number of subschemas that apply to one place in a value.
 *
 * The cost equals the size of the schema with all references expanded. It can be exponential for a small schema, such as a chain
 * of definitions that each refer twice to the next one. Recursive schemas, and schemas that compare items in pairs, have infinite
 * cost.
 */
export function schemaCost(root: JsonSchema, targets: References["targets"]): number {
  const known = new Map<SchemaNode, number>();

  function cost(schema: unknown): number {
    if (!isNode(schema)) return 1;
    const before = known.get(schema);
    if (before !== undefined) return before;
    // Set the cost to infinity first. If the schema is recursive, computing its cost finds this value.
    known.set(schema, Number.POSITIVE_INFINITY);
    let sum = schema.uniqueItems === true && comparesPairs(schema) ? Number.POSITIVE_INFINITY : 1;
    for (const target of targets.get(schema) ?? []) sum += cost(target);
    for (const { keyword, schema: child } of subschemasOf(schema)) {
      if (!isDefinition(keyword)) sum += cost(child);
    }
    known.set(schema, sum);
    return sum;
  }

  return cost(root);
}

function comparesPairs({ items, maxItems }: SchemaNode): boolean {
  if (typeof maxItems === "number" && maxItems <= MAX_COMPARED_ITEMS) return false;
  const type = isNode(items) ? items.type : undefined;
  const types = Array.isArray(type) ? type : [type];
  return !types.every((each) => typeof each === "string" && each !== "object" && each !== "array");
}
