import type { Definition } from "../event/definition.ts";
import { UnavailableError } from "../lib/errors.ts";
import type { CompiledSchema, SchemaCompiler } from "../lib/json-schema/compiled-schema.ts";

/**
 * Provides schema validators. A stored schema has compiled before, so a compile error is temporary and does not make the delivery invalid.
 */
export function createValidatorFor(schemas: SchemaCompiler) {
  const { signal } = new AbortController();
  return (
    schema: NonNullable<Definition["schema"]>,
    lane: string,
  ): CompiledSchema | Promise<CompiledSchema> =>
    schemas.peek(schema) ??
    schemas.compile(schema, { signal, lane }).then((compiled) => {
      if (compiled.ok) return compiled.value;
      throw new UnavailableError("a stored schema no longer compiles", { cause: compiled.error });
    });
}
