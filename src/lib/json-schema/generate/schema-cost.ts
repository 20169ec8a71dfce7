import type { JsonSchema } from "../compiled-schema.ts";
import { isNode, type References, type SchemaNode } from "./references.ts";
import { isDefinition, subschemasOf } from "./subschemas.ts";

/** Maximum `maxItems` with which `uniqueItems` counts as cheap. It compares all pairs of items unless all are scalars. */
const MAX_COMPARED_ITEMS = 256;

/**
 * Computes the maximum number of subschema applications per place in a value: the size of the schema with all references expanded. A
 * small schema can have exponential cost, such as a chain of definitions that each refer to the next one twice. Returns Infinity for
 * recursive schemas and for schemas that compare items in pairs.
 */
export function schemaCost(root: JsonSchema, targets: References["targets"]): number {
  const known = new Map<SchemaNode, number>();

  function cost(schema: unknown): number {
    if (!isNode(schema)) return 1;
    const before = known.get(schema);
    if (before !== undefined) return before;
    // A schema that is reached again from inside itself is recursive.
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
