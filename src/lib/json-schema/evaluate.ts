import { createRequire } from "node:module";
import { compileFunction } from "node:vm";
import type { ErrorObject } from "ajv";
import { compileLinearRegExp, type LinearRegExp } from "../regexp/linear-regexp.ts";
import type { CompiledSchema, SchemaViolation } from "./compiled-schema.ts";
import { FORMATS } from "./generate/formats.ts";
import { isMultipleOf } from "./generate/multiple-of.ts";
import { firstViolation } from "./violation.ts";

/** Thrown by `check` when the patterns would take longer than its bound; a caller that may wait asks elsewhere. */
export class PatternBudgetError extends Error {
  override readonly name = "PatternBudgetError";
}

const ANYTHING: CompiledSchema = { validate: () => undefined };
const NOTHING: CompiledSchema = {
  validate: () => ({ path: "", message: "is not allowed by the schema false" }),
};

/** Of a schema that needs no code. */
export const validatorOf = (schema: boolean): CompiledSchema => (schema ? ANYTHING : NOTHING);

/** Modules of Ajv that generated code may load. */
const AJV_RUNTIME = new Set(["ajv/dist/runtime/equal", "ajv/dist/runtime/ucs2length"]);

/** Checks one value at once. */
export type Check = (value: unknown) => SchemaViolation | undefined;

/**
 * Evaluates what `generateCode` made. The code sees the runtime of Ajv, the formats, the linear patterns and `isMultipleOf`,
 * and no other module.
 *
 * `patternBudget` bounds what all patterns together may do in one check, in characters × instructions: 50 ns each at
 * worst, a small part of it as a rule.
 */
export function evaluateCode(code: string, options: { readonly patternBudget: number }): Check {
  let budget = 0;
  const metered = (source: string, flags: string): Pick<LinearRegExp, "test"> => {
    const pattern = compileLinearRegExp(source, flags);
    return {
      test: (text) => {
        budget -= text.length * pattern.size;
        if (budget < 0) throw new PatternBudgetError("the patterns would take too long");
        return pattern.test(text);
      },
    };
  };
  const require = (name: string): unknown => {
    if (name === "linear-regexp") return { compileLinearRegExp: metered };
    if (name === "formats") return { FORMATS };
    if (name === "multiple-of") return { isMultipleOf };
    if (!AJV_RUNTIME.has(name)) throw new Error(`generated code asks for ${name}`);
    return createRequire(import.meta.url)(name);
  };
  const module: { exports: unknown } = { exports: undefined };
  compileFunction(code, ["module", "require"])(module, require);
  const { exports: validate } = module;
  if (!isValidate(validate)) throw new Error("generated code exports no validator");

  return (value) => {
    budget = options.patternBudget;
    try {
      return validate(value) ? undefined : firstViolation(validate.errors);
    } catch (error) {
      // The stack ended: the value is nested too deeply, or a text is too long for one of the formats.
      if (error instanceof RangeError) return { path: "", message: "is too deep or too long to be checked" };
      throw error;
    } finally {
      // Errors hold on to parts of the schema and, some, of the value.
      validate.errors = null;
    }
  };
}

type Validate = ((value: unknown) => boolean) & { errors?: ErrorObject[] | null };

const isValidate = (exported: unknown): exported is Validate => typeof exported === "function";
