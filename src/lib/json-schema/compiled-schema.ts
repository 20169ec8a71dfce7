import type { Finding } from "../errors.ts";
import type { Result } from "../result.ts";
import type { Asker } from "../worker-queue.ts";

/** A JSON Schema document: an object or a boolean. Do not modify it after passing it to the compiler. */
export type JsonSchema = Readonly<Record<string, unknown>> | boolean;

/** The first difference between a value and its schema. */
export interface SchemaViolation {
  /** JSON Pointer (RFC 6901) into the value; the empty string is the value itself. */
  readonly path: string;
  /** Expectation at that place, such as `must be integer`. At most a few hundred characters, without the value. */
  readonly message: string;
}

export interface CompiledSchema {
  /** Code with which another thread can check values. Booleans need none. */
  readonly generated?: { readonly digest: string; readonly code: string };
  /**
   * Validates a value; `undefined` if it is valid. Returns a promise if the schema or value is too expensive for the calling thread and
   * goes to a worker, which serves lanes round-robin. A value that exceeds the limits of CPU time or memory is a violation. The promise
   * rejects with UnavailableError if the worker fails, is closed or is overloaded.
   */
  validate(value: unknown, asker: Asker): SchemaViolation | undefined | Promise<SchemaViolation | undefined>;
}

/** Compiles JSON Schema documents to validators without blocking the calling thread. */
export interface SchemaCompiler extends AsyncDisposable {
  /**
   * Compiles a schema, or returns it from the cache or the code store. Lanes are served round-robin. Concurrent calls for one schema wait
   * in their own lanes and share the compilation that finishes first. The path of a finding is a JSON Pointer into the schema.
   *
   * @throws UnavailableError if the compiler is closed or its worker fails; the signal's reason if it aborts
   */
  compile(schema: JsonSchema, options: CompileOptions): Promise<Result<CompiledSchema, readonly Finding[]>>;

  /** Checks whether a schema may be stored: it must compile and stay within the size and cost limits. Throws like `compile`. */
  check(schema: JsonSchema, options: CompileOptions): Promise<readonly Finding[]>;

  /**
   * Returns the validator of a schema object that was compiled before. It looks up the object by identity, without hashing, for the hot
   * path. `undefined` if the schema was never compiled or was evicted; call `compile` then.
   */
  peek(schema: JsonSchema): CompiledSchema | undefined;
}

export interface CompileOptions {
  readonly signal: AbortSignal;
  /** The organization that needs the schema. */
  readonly lane: string;
}
