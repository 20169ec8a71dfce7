import type { Options } from "ajv";
import standalone from "ajv/dist/standalone/index.js";
import type { Finding } from "../errors.ts";
import { compileLinearRegExp, PatternError } from "../linear-regexp.ts";
import { err, ok, type Result } from "../result.ts";
import type { CheckSchema } from "./check-schema.ts";
import type { JsonSchema } from "./compiled-schema.ts";
import { createAjv, dialectOf } from "./dialects.ts";
import { findPlace } from "./places.ts";
import type { SchemaNode } from "./references.ts";
import { schemaCost } from "./schema-cost.ts";
import { toTheLetter } from "./to-the-letter.ts";

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
  const schema: SchemaNode | boolean = JSON.parse(text);
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
    const misshapen = check(dialect.value, schema);
    if (misshapen.length > 0) return err(misshapen);
    const unsupported = typeof schema === "object" ? toTheLetter(schema, dialect.value) : [];
    if (unsupported.length > 0) return err(unsupported);
    const ajv = createAjv(dialect.value, options, (source, flags) => {
      lastPattern = source;
      const pattern = compileLinearRegExp(source, flags);
      patterns.set(source, pattern.size);
      return pattern;
    });
    // As a plain member of an object literal it would set the prototype.
    const code = standalone
      .default(ajv, ajv.compile(schema))
      .replaceAll(/(?<!\\)"__proto__":/g, '["__proto__"]:');
    if (code.length > MAX_CODE_LENGTH) return err([{ path: "", message: "is too large to be compiled" }]);
    const patternSize = [...patterns.values()].reduce((sum, size) => sum + size, 0);
    return ok({ code, cost: schemaCost(schema), patternSize });
  } catch (error) {
    return err([findingOf(error, schema, lastPattern)]);
  }
}

function findingOf(error: unknown, schema: JsonSchema, lastPattern: string): Finding {
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
