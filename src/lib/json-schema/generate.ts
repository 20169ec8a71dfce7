import { MissingRefError, type Options } from "ajv";
import standalone from "ajv/dist/standalone/index.js";
import type { Finding } from "../errors.ts";
import { compileLinearRegExp, PatternError } from "../linear-regexp.ts";
import { err, ok, type Result } from "../result.ts";
import type { CheckSchema } from "./check-schema.ts";
import type { JsonSchema } from "./compiled-schema.ts";
import { createAjv, dialectOf } from "./dialects.ts";
import { findPlace, resolvePointer } from "./places.ts";
import { schemaCost } from "./schema-cost.ts";

/** A schema as the source of a CommonJS module that exports the validator, and what running it takes. */
export interface GeneratedCode {
  readonly code: string;
  /** Applications of subschemas to one place of a value, at most (`schemaCost`). */
  readonly cost: number;
  /** Instructions of all its patterns together: what evaluating the code has to build. */
  readonly patternSize: number;
}

/** Beyond it a schema would push all others out of the cache. */
const MAX_CODE_LENGTH = 16 * 1024 * 1024;
/** Names that any object has by its prototype: Ajv then has to look at own properties only. */
const INHERITED = Object.getOwnPropertyNames(Object.prototype);

/** The schema's canonical text to code. Takes seconds and much memory for some schemas: only for the worker. */
export function generateCode(text: string, check: CheckSchema): Result<GeneratedCode, readonly Finding[]> {
  const schema: JsonSchema = JSON.parse(text);
  const dialect = dialectOf(schema);
  if (!dialect.ok) return err([dialect.error]);
  const patterns = new Map<string, number>();
  let lastPattern = "";
  const options: Options = {
    meta: false,
    validateSchema: false,
    inlineRefs: false,
    ownProperties: INHERITED.some((name) => text.includes(JSON.stringify(name))),
    code: { source: true, esm: false, lines: false },
  };
  try {
    const wrong = [...check(dialect.value, schema), ...unsupported(schema)];
    if (wrong.length > 0) return err(wrong);
    const ajv = createAjv(dialect.value, options, (source, flags) => {
      lastPattern = source;
      const pattern = compileLinearRegExp(source, flags);
      patterns.set(source, pattern.size);
      return pattern;
    });
    const code = standalone.default(ajv, ajv.compile(schema));
    if (code.length > MAX_CODE_LENGTH) return err([{ path: "", message: "is too large to be compiled" }]);
    const patternSize = [...patterns.values()].reduce((sum, size) => sum + size, 0);
    return ok({ code, cost: schemaCost(schema), patternSize });
  } catch (error) {
    return err([findingOf(error, schema, lastPattern)]);
  }
}

/** What Ajv would take silently, and otherwise than was meant. */
function unsupported(schema: JsonSchema): readonly Finding[] {
  if (typeof schema !== "object") return [];
  const findings: Finding[] = [];
  if (schema.$async === true) findings.push({ path: "/$async", message: "is not supported" });
  const path = findPlace(schema, (key, value) => key === "$ref" && isInherited(schema, value));
  if (path !== undefined) findings.push({ path, message: "leads nowhere in this schema" });
  return findings;
}

/** Ajv follows references by plain property access, into the prototype of what it finds. */
function isInherited(schema: JsonSchema, ref: unknown): boolean {
  if (typeof ref !== "string" || !ref.split(/[/#]/).some((part) => INHERITED.includes(part))) return false;
  return resolvePointer(schema, ref) === undefined;
}

function findingOf(error: unknown, schema: JsonSchema, lastPattern: string): Finding {
  if (error instanceof MissingRefError) {
    const { missingRef, missingSchema } = error;
    const [, pointer = ""] = missingRef.split("#");
    const path = findPlace(
      schema,
      (key, value) =>
        /^\$(?:dynamicRef|ref)$/.test(key) &&
        typeof value === "string" &&
        (value === missingRef || value === `#${pointer}` || missingRef.endsWith(`/${value}`)),
    );
    const reason = missingSchema
      ? "is not part of this schema, and remote schemas are never fetched"
      : "leads nowhere in this schema";
    return { path: path ?? "", message: `the $ref ${JSON.stringify(missingRef)} ${reason}` };
  }
  if (error instanceof PatternError) {
    const path = findPlace(schema, (key, value, parentKey) =>
      parentKey === "patternProperties" ? key === lastPattern : key === "pattern" && value === lastPattern,
    );
    return { path: path ?? "", message: error.message };
  }
  if (error instanceof RangeError)
    return { path: "", message: "is nested too deeply, or refers to itself without end" };
  return {
    path: "",
    message: `cannot be compiled: ${error instanceof Error ? error.message : String(error)}`,
  };
}
