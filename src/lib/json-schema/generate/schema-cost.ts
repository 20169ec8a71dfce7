import type { JsonSchema } from "../compiled-schema.ts";
import { isNode, type References, type SchemaNode } from "./references.ts";
import { isDefinition, subschemasOf } from "./subschemas.ts";

/** `uniqueItems` compares each item with each other one unless all are scalars. */
const MAX_COMPARED_ITEMS = 256;

/**
 * How often subschemas can be applied to one place of a value: the schema's size with every reference written out. What
 * is small on paper can be exponential here (a chain of definitions, each naming the next one twice). Infinity for
 * schemas that recurse or compare items in pairs.
 */
export function schemaCost(root: JsonSchema, targets: References["targets"]): number {
  const known = new Map<SchemaNode, number>();

  function cost(schema: unknown): number {
    if (!isNode(schema)) return 1;
    const before = known.get(schema);
    if (before !== undefined) return before;
    // Found again below itself, it recurses.
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
