import { _, Ajv, type ErrorObject, type Options, type ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { Finding } from "../../errors.ts";
import { compileLinearRegExp, type LinearRegExp } from "../../regexp/linear-regexp.ts";
import type { JsonSchema } from "../compiled-schema.ts";
import { messageOf } from "../violation.ts";
import { type Dialect, META_SCHEMAS } from "./dialect.ts";
import { FORMATS } from "./formats.ts";
import { OWN_KEYWORDS } from "./keywords.ts";

/** Creates an Ajv instance that supports all formats, writes no logs, and ignores unknown keywords. */
export function createAjv(
  dialect: Dialect,
  options: Options,
  compilePattern: (source: string, flags: string) => LinearRegExp = compileLinearRegExp,
): Ajv {
  const AjvOfDialect = dialect === "draft-07" ? Ajv : Ajv2020;
  const ajv = new AjvOfDialect({
    ...options,
    strict: false,
    ignoreKeywordsWithRef: dialect === "draft-07",
    logger: false,
    formats: FORMATS,
    code: { ...options.code, regExp: asGenerated(compilePattern), formats: _`require("formats").FORMATS` },
  });
  // Remove the prototypes, because Ajv looks up names from the schema in these objects. Inherited names such as "constructor" must
  // not be found.
  Object.setPrototypeOf(ajv.formats, null);
  Object.setPrototypeOf(ajv.RULES.all, null);
  Object.setPrototypeOf(ajv.RULES.keywords, null);
  // Ignore the keyword `id`. By default, Ajv throws if a schema contains `id`, because draft 4 used it instead of `$id`.
  ajv.removeKeyword("id");
  for (const definition of OWN_KEYWORDS[dialect]) {
    ajv.removeKeyword(String(definition.keyword));
    ajv.addKeyword(definition);
  }
  return ajv;
}

/**
 * Sets the JavaScript expression with which generated code creates a regular expression. `evaluate.ts` provides the `require`
 * function of that code.
 */
const asGenerated = (compilePattern: (source: string, flags: string) => LinearRegExp) =>
  Object.assign((source: string, flags: string) => compilePattern(source, flags), {
    code: 'require("linear-regexp").compileLinearRegExp',
  });

const MAX_FINDINGS = 10;

/** Validates a schema against the meta-schema of its dialect. The path of an error is a JSON Pointer into the schema. */
export type CheckSchema = (dialect: Dialect, schema: JsonSchema) => readonly Finding[];

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
  if (!validate) throw new Error(`Ajv has no meta-schema for ${dialect}`);
  return validate;
}

/**
 * Converts Ajv's errors to one error per path. Ajv reports further errors for the same path, because `anyOf` and `allOf` repeat the
 * error of their branches.
 */
function findings(errors: readonly ErrorObject[]): readonly Finding[] {
  const byPath = new Map<string, Finding>();
  for (const error of errors) {
    const path = error.instancePath;
    if (!byPath.has(path)) byPath.set(path, { path, message: messageOf(error) });
  }
  return [...byPath.values()].slice(0, MAX_FINDINGS);
}
