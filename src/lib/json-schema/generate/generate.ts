import type { Options } from "ajv";
import standalone from "ajv/dist/standalone/index.js";
import { parseJson } from "../../../event/parse-json.ts";
import type { Finding } from "../../errors.ts";
import { compileLinearRegExp, PatternError } from "../../regexp/linear-regexp.ts";
import { err, ok, type Result } from "../../result.ts";
import { dialectOf } from "./dialect.ts";
import { type CheckSchema, createAjv } from "./dialects.ts";
import { isNode, References, type SchemaNode } from "./references.ts";
import { rewriteForAjv } from "./rewrite-for-ajv.ts";
import { schemaCost } from "./schema-cost.ts";
import { escapeStep } from "./subschemas.ts";

/** Source code of a CommonJS module that exports a validator, with numbers that estimate how expensive the validator is. */
export interface GeneratedCode {
  readonly code: string;
  /** Maximum number of subschemas that apply to the same place in a value, as computed by `schemaCost`. */
  readonly cost: number;
  /**
   * Total size of all regular expressions in the code, in automaton instructions. All of them are built when the code is evaluated.
   */
  readonly patternSize: number;
}

/** Maximum length of generated code, in characters. Longer code would evict all other schemas from the compiler's cache. */
const MAX_CODE_LENGTH = 16 * 1024 * 1024;
/**
 * Property names that every object inherits, such as "constructor". If a schema contains such a name, Ajv must check own properties
 * only.
 */
const INHERITED = Object.getOwnPropertyNames(Object.prototype);

/**
 * Generates validator code from the canonical text of a schema. Call this only in a worker thread, because it can take seconds and
 * much memory.
 */
export function generateCode(text: string, check: CheckSchema): Result<GeneratedCode, readonly Finding[]> {
  const schema = parseJson(text) as SchemaNode | boolean;
  const dialect = dialectOf(schema);
  if (!dialect.ok) return err([dialect.error]);
  const patterns = new Map<string, number>();
  let references: References | undefined;
  let lastPattern = "";
  const options: Options = {
    meta: false,
    validateSchema: false,
    inlineRefs: false,
    ownProperties: INHERITED.some((name) => text.includes(JSON.stringify(name))),
    // Disable code optimization. It takes more than half of the generation time, and makes the code only a tenth shorter and no
    // faster.
    code: { source: true, esm: false, lines: false, optimize: false },
  };
  try {
    const invalid = check(dialect.value, schema);
    if (invalid.length > 0) return err(invalid);
    references = new References(schema, dialect.value);
    const unsupported = rewriteForAjv(schema, dialect.value, references);
    if (unsupported.length > 0) return err(unsupported);
    const ajv = createAjv(dialect.value, options, (source, flags) => {
      lastPattern = source;
      const pattern = compileLinearRegExp(source, flags);
      patterns.set(source, pattern.size);
      return pattern;
    });
    // Turn the key `__proto__` into a computed key. In an object literal, a plain `"__proto__":` would set the prototype.
    const code = standalone
      .default(ajv, ajv.compile(schema))
      .replaceAll(/(?<!\\)"__proto__":/g, '["__proto__"]:');
    if (code.length > MAX_CODE_LENGTH) return err([{ path: "", message: "is too large to compile" }]);
    const patternSize = [...patterns.values()].reduce((sum, size) => sum + size, 0);
    return ok({ code, cost: schemaCost(schema, references.targets), patternSize });
  } catch (error) {
    return err([toFinding(error, () => findPattern(lastPattern, references))]);
  }
}

function toFinding(error: unknown, findPatternPlace: () => string): Finding {
  if (error instanceof PatternError) return { path: findPatternPlace(), message: error.message };
  if (error instanceof RangeError)
    return { path: "", message: "is nested too deeply, is too large, or contains an endless reference" };
  const reason = error instanceof Error ? error.message : String(error);
  return { path: "", message: `cannot be compiled: ${reason}` };
}

function findPattern(source: string, references: References | undefined): string {
  for (const [node, { pointer }] of references?.places ?? []) {
    if (node.pattern === source) return `${pointer}/pattern`;
    if (isNode(node.patternProperties) && Object.hasOwn(node.patternProperties, source))
      return `${pointer}/patternProperties/${escapeStep(source)}`;
  }
  return "";
}
