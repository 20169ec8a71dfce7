import type { Options } from "ajv";
import standalone from "ajv/dist/standalone/index.js";
import type { Finding } from "../../errors.ts";
import { compileLinearRegExp, PatternError } from "../../regexp/linear-regexp.ts";
import { err, ok, type Result } from "../../result.ts";
import { type CheckSchema, createAjv, dialectOf } from "./dialects.ts";
import { isNode, References, type SchemaNode } from "./references.ts";
import { schemaCost } from "./schema-cost.ts";
import { escapeStep } from "./subschemas.ts";
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
  let references: References | undefined;
  let lastPattern = "";
  const options: Options = {
    meta: false,
    validateSchema: false,
    inlineRefs: false,
    ownProperties: INHERITED.some((name) => text.includes(JSON.stringify(name))),
    // Leaving out what is not needed makes the code a tenth shorter and no faster, and takes half of the time and more.
    code: { source: true, esm: false, lines: false, optimize: false },
  };
  try {
    const misshapen = check(dialect.value, schema);
    if (misshapen.length > 0) return err(misshapen);
    references = new References(schema, dialect.value);
    const unsupported = toTheLetter(schema, dialect.value, references);
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
    return ok({ code, cost: schemaCost(schema, references.targets), patternSize });
  } catch (error) {
    return err([findingOf(error, () => findPattern(lastPattern, references))]);
  }
}

function findingOf(error: unknown, placeOfPattern: () => string): Finding {
  if (error instanceof PatternError) return { path: placeOfPattern(), message: error.message };
  if (error instanceof RangeError)
    return { path: "", message: "is nested too deeply, is too large, or refers to itself without end" };
  const reason = error instanceof Error ? error.message : String(error);
  return { path: "", message: `cannot be compiled: ${reason}` };
}

/** The JSON Pointer of the first place where the pattern stands. */
function findPattern(source: string, references: References | undefined): string {
  for (const [node, { pointer }] of references?.places ?? []) {
    if (node.pattern === source) return `${pointer}/pattern`;
    if (isNode(node.patternProperties) && Object.hasOwn(node.patternProperties, source))
      return `${pointer}/patternProperties/${escapeStep(source)}`;
  }
  return "";
}
