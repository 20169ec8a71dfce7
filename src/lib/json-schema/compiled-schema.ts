import type { Finding } from "../errors.ts";
import type { Result } from "../result.ts";
import type { Asker } from "../worker-queue.ts";

/** A JSON Schema document: an object, or `true`/`false`. Not to be changed once it was handed over. */
export type JsonSchema = Readonly<Record<string, unknown>> | boolean;

/** The first thing in which a value differs from its schema. */
export interface SchemaViolation {
  /** JSON Pointer (RFC 6901) into the value; the empty string is the value itself. */
  readonly path: string;
  /** The expectation there, e.g. `must be integer`; at most a few hundred characters, without the value. */
  readonly message: string;
}

export interface CompiledSchema {
  /** By which another thread can check values; a boolean needs none. */
  readonly generated?: { readonly digest: string; readonly code: string };
  /**
   * Undefined when the value is valid. Answers at once as a rule; with a promise where schema or value are too costly
   * for the calling thread and go to a worker, in which the lanes of all who ask take turns. A value that cannot be checked
   * within the bounds of CPU time and memory is in violation. The promise rejects with an UnavailableError when the worker is
   * lost, closed or has too much to do.
   */
  validate(value: unknown, asker: Asker): SchemaViolation | undefined | Promise<SchemaViolation | undefined>;
}

/** Turns JSON Schema documents into validators without ever holding up the thread that asks. */
export interface SchemaCompiler extends AsyncDisposable {
  /**
   * Compiles, or answers from the cache, or from code that was kept; concurrent calls for one schema share the
   * compilation that is done first, each in the line of its own lane. The lanes of all who ask take turns. Findings have a JSON Pointer into the schema as their path.
   *
   * @throws UnavailableError when the compiler is closed or its worker is lost; the signal's reason when it aborts.
   */
  compile(schema: JsonSchema, options: CompileOptions): Promise<Result<CompiledSchema, readonly Finding[]>>;

  /** Whether a schema may be stored: it compiles, and takes no more than a schema may. Throws as `compile` does. */
  check(schema: JsonSchema, options: CompileOptions): Promise<readonly Finding[]>;

  /**
   * The validator of a schema object that was compiled before, by the identity of the object: no hashing, for the hot
   * path. Undefined when it is cold or was evicted; then `compile` brings it back.
   */
  peek(schema: JsonSchema): CompiledSchema | undefined;
}

export interface CompileOptions {
  readonly signal: AbortSignal;
  /** On whose behalf: an organization. */
  readonly lane: string;
}
