import type { Finding } from "../../errors.ts";
import { type Dialect, dialectOf } from "./dialect.ts";
import { isNode, type References, type SchemaNode } from "./references.ts";
import { subschemasOf } from "./subschemas.ts";

/**
 * Keywords whose subschemas apply to the same value as the parent schema. Items and properties that these subschemas evaluate count
 * as evaluated for the parent.
 */
const IN_PLACE = new Set(["allOf", "anyOf", "dependentSchemas", "else", "if", "oneOf", "then"]);
const PROTO = "__proto__";

/**
 * Rewrites a valid schema to an equivalent schema that Ajv validates correctly, in which every reference is a JSON Pointer. Returns
 * an error for each unsupported feature.
 */
export function rewriteForAjv(
  root: SchemaNode | boolean,
  dialect: Dialect,
  references: References,
): readonly Finding[] {
  const findings = [...references.findings];
  const nodes = [...references.places].map(([node, { pointer }]) => ({ node, pointer }));
  const countsProperties = nodes.some(({ node }) => node.unevaluatedProperties !== undefined);
  const hasContains = nodes.some(({ node }) => node.contains !== undefined);
  for (const { node, pointer } of nodes) {
    if (node !== root) findings.push(...findOtherDialect(node, pointer, dialect));
    if (node.$async === true) findings.push({ path: `${pointer}/$async`, message: "is not supported" });
    if (Array.isArray(node.enum) && node.enum.length === 0) {
      findings.push({ path: `${pointer}/enum`, message: "must contain at least one value" });
    }
    const named = rewriteProto(node);
    if (named === "dependencies" || (named && countsProperties)) {
      const message =
        "a property named __proto__ is not supported in dependencies, or together with unevaluatedProperties";
      findings.push({ path: `${pointer}/${named}/${PROTO}`, message });
    }
    if (hasContains && node.unevaluatedItems !== undefined && node.unevaluatedItems !== true) {
      const place = findContains(node, references);
      if (place !== undefined) {
        const message = "is not supported in a schema that uses unevaluatedItems for the same array";
        findings.push({ path: `${place}/contains`, message });
      }
    }
  }
  return findings;
}

/**
 * Finds a nested schema whose dialect differs from that of the root schema. JSON Schema allows mixed dialects, but this compiler
 * does not.
 */
function findOtherDialect(node: SchemaNode, pointer: string, dialect: Dialect): readonly Finding[] {
  if (node.$schema === undefined) return [];
  const own = dialectOf(node);
  return own.ok && own.value === dialect
    ? []
    : [{ path: `${pointer}/$schema`, message: "must equal the $schema of the root schema" }];
}

/**
 * Rewrites properties named `__proto__` to equivalent patterns, because Ajv ignores that name. Returns the last keyword that
 * contained the name, if any.
 */
function rewriteProto(node: SchemaNode): string | undefined {
  let found: string | undefined;
  for (const keyword of ["properties", "patternProperties", "dependencies"]) {
    const members = node[keyword];
    if (!isNode(members) || !Object.hasOwn(members, PROTO)) continue;
    found = keyword;
    if (keyword === "dependencies") continue;
    const pattern = keyword === "properties" ? `^(?:${PROTO})$` : `(?:${PROTO})`;
    const patterns = isNode(node.patternProperties) ? node.patternProperties : {};
    patterns[pattern] = Object.getOwnPropertyDescriptor(members, PROTO)?.value;
    node.patternProperties = patterns;
  }
  return found;
}

/**
 * Finds a `contains` that applies to the same value as `unevaluatedItems`. Ajv does not support this combination, because it would
 * count all items as evaluated.
 */
function findContains(from: SchemaNode, { places, targets }: References): string | undefined {
  const seen = new Set<SchemaNode>();
  function search(node: unknown): string | undefined {
    if (!isNode(node) || seen.has(node)) return undefined;
    seen.add(node);
    if (node.contains !== undefined) return places.get(node)?.pointer;
    const applied = [...subschemasOf(node)].filter(({ keyword }) => IN_PLACE.has(keyword));
    for (const next of [...applied.map(({ schema }) => schema), ...(targets.get(node) ?? [])]) {
      const found = search(next);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  return search(from);
}
