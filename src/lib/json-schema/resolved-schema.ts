import { parseJson } from "../../event/parse-json.ts";
import type { JsonSchema } from "./compiled-schema.ts";
import { type Dialect, dialectOf } from "./generate/dialect.ts";
import { References, type SchemaNode } from "./generate/references.ts";

/** A copy of a schema in which each reference is a JSON Pointer from the root. `$id` and anchors are removed. */
export interface ResolvedSchema {
  readonly root: SchemaNode | boolean;
  readonly dialect: Dialect;
  readonly references: References;
}

/** Resolves the references of a schema. Returns `undefined` if that fails, as for a schema from before a rule was introduced. */
export function resolveSchema(schema: JsonSchema): ResolvedSchema | undefined {
  const dialect = dialectOf(schema);
  if (!dialect.ok) return undefined;
  try {
    const root = parseJson(JSON.stringify(schema)) as SchemaNode | boolean;
    const references = new References(root, dialect.value);
    return references.findings.length > 0 ? undefined : { root, dialect: dialect.value, references };
  } catch (error) {
    // The schema is nested too deeply.
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
