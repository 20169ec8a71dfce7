import type { Finding } from "../errors.ts";
import type { Result } from "../result.ts";
import type { JobOptions } from "../worker-queue.ts";

/** A JSON Schema document. Do not modify it after compilation, because the compiler caches validators by object identity. */
export type JsonSchema = Readonly<Record<string, unknown>> | boolean;

export interface SchemaViolation {
  /** JSON Pointer (RFC 6901) to the invalid part of the value. An empty string means the whole value. */
  readonly path: string;
  /** The violated requirement, such as `must be integer`. At most a few hundred characters long, and never contains the value. */
  readonly message: string;
  /** Set if the value could not be validated completely, because it is nested too deeply or costs too much. */
  readonly isInconclusive?: true;
}

export interface CompiledSchema {
  /** Generated validator code that another thread can run. `undefined` for boolean schemas, which need no code. */
  readonly generated?: { readonly digest: string; readonly code: string };
  /**
   * Validates a value. Returns `undefined` if it is valid.
   *
   * Returns a promise if the schema or the value is too expensive for the calling thread. A worker thread then validates the value
   * and serves lanes round-robin. A value that exceeds the worker's CPU time or memory limit counts as a violation. The promise
   * rejects with UnavailableError if the worker fails, is closed or is overloaded.
   */
  validate(
    value: unknown,
    asker: JobOptions,
  ): SchemaViolation | undefined | Promise<SchemaViolation | undefined>;
  /**
   * Like `validate`, but a worker thread also parses the value. Use it for texts that are too long to parse on the calling thread.
   * `undefined` for boolean schemas and on worker threads.
   */
  readonly validateJson?: (json: string, asker: JobOptions) => Promise<SchemaViolation | undefined>;
}

export interface SchemaCompiler extends AsyncDisposable {
  /**
   * Compiles a schema, or returns it from the cache. Compilations are scheduled round-robin by lane. If several
   * lanes need the same schema, each lane queues a compilation, and all of them use the first result. The path of a finding is a
   * JSON Pointer into the schema.
   *
   * @throws UnavailableError if the compiler is closed or its worker fails
   * @throws the reason of the signal if the signal aborts
   */
  compile(schema: JsonSchema, options: CompileOptions): Promise<Result<CompiledSchema, readonly Finding[]>>;

  /**
   * Returns the reasons to reject a schema: the schema does not compile, or exceeds a size or cost limit. Throws like `compile`.
   */
  check(schema: JsonSchema, options: CompileOptions): Promise<readonly Finding[]>;

  /**
   * Returns the validator of a schema that was compiled before. Returns `undefined` if it was never compiled or was evicted from
   * the cache; call `compile` then. Looks the object up by reference and does not hash it, so that it is fast enough for every
   * delivery.
   */
  peek(schema: JsonSchema): CompiledSchema | undefined;
}

export interface CompileOptions {
  readonly signal: AbortSignal;
  /** Id of the organization that needs the schema. */
  readonly lane: string;
}
