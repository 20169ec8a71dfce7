import { createRequire } from "node:module";
import { compileFunction } from "node:vm";
import type { ErrorObject } from "ajv";
import { compileLinearRegExp, type LinearRegExp } from "../regexp/linear-regexp.ts";
import type { CompiledSchema, SchemaViolation } from "./compiled-schema.ts";
import { FORMATS } from "./generate/formats.ts";
import { isMultipleOf } from "./generate/multiple-of.ts";
import { firstViolation } from "./violation.ts";

/** Thrown when matching regular expressions exceeds the budget. The caller can then validate the value in a worker thread. */
export class PatternBudgetError extends Error {
  override readonly name = "PatternBudgetError";
}

const ANYTHING: CompiledSchema = { validate: () => undefined };
const NOTHING: CompiledSchema = {
  validate: () => ({ path: "", message: "is not allowed by the schema false" }),
};

export const validatorOf = (schema: boolean): CompiledSchema => (schema ? ANYTHING : NOTHING);

const AJV_RUNTIME = new Set(["ajv/dist/runtime/equal", "ajv/dist/runtime/ucs2length"]);

export type Check = (value: unknown) => SchemaViolation | undefined;

/**
 * Evaluates generated code and returns its validator. The code can require only Ajv's runtime, the formats, the linear patterns
 * and `isMultipleOf`.
 *
 * @param options.patternBudget limit for matching all patterns of one value, in characters × instructions. One unit takes at most
 *   50 ns
 */
export function evaluateCode(code: string, options: { readonly patternBudget: number }): Check {
  let budget = 0;
  const metered = (source: string, flags: string): Pick<LinearRegExp, "test"> => {
    const pattern = compileLinearRegExp(source, flags);
    return {
      test: (text) => {
        budget -= text.length * pattern.size;
        if (budget < 0)
          throw new PatternBudgetError("matching the patterns of the schema would exceed the budget");
        return pattern.test(text);
      },
    };
  };
  const require = (name: string): unknown => {
    if (name === "linear-regexp") return { compileLinearRegExp: metered };
    if (name === "formats") return { FORMATS };
    if (name === "multiple-of") return { isMultipleOf };
    if (!AJV_RUNTIME.has(name)) throw new Error(`generated code requires the unknown module ${name}`);
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
      // A RangeError means a stack overflow: the value is nested too deeply, or a string is too long for a format's pattern.
      if (error instanceof RangeError)
        return { path: "", message: "is nested too deeply or too long to validate", isInconclusive: true };
      throw error;
    } finally {
      // Drop the errors, because they keep parts of the schema and the value in memory.
      validate.errors = null;
    }
  };
}

type Validate = ((value: unknown) => boolean) & { errors?: ErrorObject[] | null };

const isValidate = (exported: unknown): exported is Validate => typeof exported === "function";
