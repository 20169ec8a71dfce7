import type { JsonSchema } from "./compiled-schema.ts";
import { resolvePointer } from "./places.ts";
import { isDefinition, subschemasOf } from "./subschemas.ts";

/** `uniqueItems` compares each item with each other one unless all are scalars. */
const MAX_COMPARED_ITEMS = 256;

/**
 * How often subschemas can be applied to one place of a value: the schema's size with every `$ref` written out. What
 * is small on paper can be exponential here (a chain of definitions, each naming the next one twice). Infinity for
 * schemas that recurse, compare items in pairs, or refer in other ways than by JSON Pointer from the root.
 */
export function schemaCost(root: JsonSchema): number {
  const known = new Map<object, number>();

  function cost(schema: unknown): number {
    if (typeof schema !== "object" || schema === null) return 1;
    const before = known.get(schema);
    if (before !== undefined) return before;
    // Found again below itself, it recurses.
    known.set(schema, Number.POSITIVE_INFINITY);
    let sum = 1;
    for (const [keyword, value] of Object.entries(schema)) {
      if (keyword === "$ref") sum += cost(resolve(root, value));
      else if (
        keyword === "$dynamicRef" ||
        keyword === "$recursiveRef" ||
        (keyword === "$id" && schema !== root)
      )
        return Number.POSITIVE_INFINITY;
      else if (keyword === "uniqueItems" && value === true && comparesPairs(schema)) {
        return Number.POSITIVE_INFINITY;
      }
    }
    for (const { keyword, schema: child } of subschemasOf(schema)) {
      if (!isDefinition(keyword)) sum += cost(child);
    }
    known.set(schema, sum);
    return sum;
  }

  return cost(root);
}

/** A schema that recurses stands for what cannot be followed here: it costs Infinity. */
const ENDLESS: { readonly allOf: unknown[] } = { allOf: [] };
ENDLESS.allOf.push(ENDLESS);

function resolve(root: JsonSchema, ref: unknown): unknown {
  const found = typeof ref === "string" ? resolvePointer(root, ref) : undefined;
  return found === undefined ? ENDLESS : found;
}

function comparesPairs(schema: { readonly items?: unknown; readonly maxItems?: unknown }): boolean {
  if (typeof schema.maxItems === "number" && schema.maxItems <= MAX_COMPARED_ITEMS) return false;
  const { items } = schema;
  const type = typeof items === "object" && items !== null && "type" in items ? items.type : undefined;
  const types = Array.isArray(type) ? type : [type];
  return !types.every((each) => typeof each === "string" && each !== "object" && each !== "array");
}
