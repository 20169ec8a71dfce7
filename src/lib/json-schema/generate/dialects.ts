import { _, Ajv, type ErrorObject, type Options, type ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { Finding } from "../../errors.ts";
import { compileLinearRegExp, type LinearRegExp } from "../../regexp/linear-regexp.ts";
import { err, ok, type Result } from "../../result.ts";
import type { JsonSchema } from "../compiled-schema.ts";
import { messageOf } from "../violation.ts";
import { FORMATS } from "./formats.ts";
import { OWN_KEYWORDS } from "./keywords.ts";

/** A draft of JSON Schema that is understood. */
export type Dialect = "draft-07" | "2020-12";

/** The address of each dialect's meta-schema, as Ajv files it. */
const META_SCHEMAS: Readonly<Record<Dialect, string>> = {
  "draft-07": "http://json-schema.org/draft-07/schema",
  "2020-12": "https://json-schema.org/draft/2020-12/schema",
};

/** The dialect that `$schema` names; 2020-12 where it names none. */
export function dialectOf(schema: JsonSchema): Result<Dialect, Finding> {
  const named = typeof schema === "object" ? schema.$schema : undefined;
  if (named === undefined) return ok("2020-12");
  const address = typeof named === "string" ? named.replace(/^https?:/, "").replace(/#$/, "") : undefined;
  for (const dialect of ["draft-07", "2020-12"] as const) {
    if (META_SCHEMAS[dialect].replace(/^https?:/, "") === address) return ok(dialect);
  }
  const known = Object.values(META_SCHEMAS).join(" or ");
  return err({ path: "/$schema", message: `must be ${known}, or be left out for the latter` });
}

/** An Ajv of the dialect with the formats; unknown keywords are annotations, nothing is logged. */
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
  // Ajv reads the user's names from plain objects, where "constructor" or "toString" would be found.
  Object.setPrototypeOf(ajv.formats, null);
  Object.setPrototypeOf(ajv.RULES.all, null);
  Object.setPrototypeOf(ajv.RULES.keywords, null);
  // Draft 4's word for `$id`, on which Ajv throws: an annotation like any other unknown keyword.
  ajv.removeKeyword("id");
  for (const definition of OWN_KEYWORDS[dialect]) {
    ajv.removeKeyword(String(definition.keyword));
    ajv.addKeyword(definition);
  }
  return ajv;
}

/** Generated code makes its patterns by this expression; its `require` is what `evaluate.ts` hands to it. */
const asGenerated = (compilePattern: (source: string, flags: string) => LinearRegExp) =>
  Object.assign((source: string, flags: string) => compilePattern(source, flags), {
    code: 'require("linear-regexp").compileLinearRegExp',
  });

const MAX_FINDINGS = 10;

/** Findings about a schema by its dialect's meta-schema; paths are JSON Pointers into the schema. */
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
