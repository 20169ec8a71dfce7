import type { ErrorObject, ValidateFunction } from "ajv";
import type { Finding } from "../errors.ts";
import type { JsonSchema } from "./compiled-schema.ts";
import { createAjv, type Dialect, META_SCHEMAS } from "./dialects.ts";
import { messageOf } from "./violation.ts";

const MAX_FINDINGS = 10;

/** What is wrong with a schema by its dialect's meta-schema; paths are JSON Pointers into the schema. */
export type CheckSchema = (dialect: Dialect, schema: JsonSchema) => readonly Finding[];

/** Each dialect's meta-schema is compiled when it is first needed, and once. */
export function createSchemaCheck(): CheckSchema {
  const compiled = new Map<Dialect, ValidateFunction>();
  return (dialect, schema) => {
    const validate = compiled.get(dialect) ?? compileMetaSchema(dialect);
    compiled.set(dialect, validate);
    return validate(schema) ? [] : findings(validate.errors ?? []);
  };
}

function compileMetaSchema(dialect: Dialect): ValidateFunction {
  const validate = createAjv(dialect, { allErrors: true }).getSchema(META_SCHEMAS[dialect]);
  if (!validate) throw new Error(`Ajv does not carry the meta-schema of ${dialect}`);
  return validate;
}

/** The first error of each place: what follows at the same place is `anyOf` and `allOf` saying it again. */
function findings(errors: readonly ErrorObject[]): readonly Finding[] {
  const byPath = new Map<string, Finding>();
  for (const error of errors) {
    const path = error.instancePath;
    if (!byPath.has(path)) byPath.set(path, { path, message: messageOf(error) });
  }
  return [...byPath.values()].slice(0, MAX_FINDINGS);
}
