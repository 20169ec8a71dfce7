import type { Finding } from "../../errors.ts";
import { type Dialect, dialectOf } from "./dialects.ts";
import { isNode, type References, type SchemaNode } from "./references.ts";
import { subschemasOf } from "./subschemas.ts";

/** Keywords that apply their schemas to the same value, whose evaluated items and properties count as their own. */
const IN_PLACE = new Set(["allOf", "anyOf", "dependentSchemas", "else", "if", "oneOf", "then"]);
const PROTO = "__proto__";

/**
 * Changes a schema, which fits its meta-schema, into one of the same meaning that Ajv judges rightly; findings name what it cannot
 * judge. Afterwards all references are JSON Pointers from the root, and nothing else names a place.
 */
export function toTheLetter(
  root: SchemaNode | boolean,
  dialect: Dialect,
  references: References,
): readonly Finding[] {
  const findings = [...references.findings];
  const nodes = [...references.places].map(([node, { pointer }]) => ({ node, pointer }));
  const countsProperties = nodes.some(({ node }) => node.unevaluatedProperties !== undefined);
  const hasContains = nodes.some(({ node }) => node.contains !== undefined);
  for (const { node, pointer } of nodes) {
    if (node !== root) findings.push(...otherDialect(node, pointer, dialect));
    if (node.$async === true) findings.push({ path: `${pointer}/$async`, message: "is not supported" });
    if (Array.isArray(node.enum) && node.enum.length === 0) {
      findings.push({ path: `${pointer}/enum`, message: "must have a value" });
    }
    const named = nameProto(node);
    if (named === "dependencies" || (named && countsProperties)) {
      const message =
        "a property of this name is not supported here, or not together with unevaluatedProperties";
      findings.push({ path: `${pointer}/${named}/${PROTO}`, message });
    }
    if (hasContains && node.unevaluatedItems !== undefined && node.unevaluatedItems !== true) {
      const place = findContains(node, references);
      if (place !== undefined) {
        const message = "is not supported where unevaluatedItems counts the items that it finds";
        findings.push({ path: `${place}/contains`, message });
      }
    }
  }
  return findings;
}

/** A schema with an address may be of another dialect than the one that holds it. */
function otherDialect(node: SchemaNode, pointer: string, dialect: Dialect): readonly Finding[] {
  if (node.$schema === undefined) return [];
  const own = dialectOf(node);
  return own.ok && own.value === dialect
    ? []
    : [{ path: `${pointer}/$schema`, message: "must be the one of the whole schema" }];
}

/** Ajv passes over the name `__proto__`; as a pattern it sees it. Answers the keyword that has it. */
function nameProto(node: SchemaNode): string | undefined {
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

/** Ajv has no place to keep which items `contains` found, and takes all of them for evaluated. */
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
