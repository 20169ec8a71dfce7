import { invalidParameters } from "../../../http/errors.ts";
import { type Finding, UnavailableError } from "../../../lib/errors.ts";
import type { JsonSchema, SchemaCompiler } from "../../../lib/json-schema/compiled-schema.ts";

export interface CheckSchemasDeps {
  readonly schemas: Pick<SchemaCompiler, "check">;
  /** Aborts when the gateway shuts down. */
  readonly stopping: AbortSignal;
}

/** Maximum time to compile a request's schemas, in ms. After a timeout, a retry continues, because compiled schemas stay cached. */
const MAX_CHECK_MS = 20_000;

/**
 * Compiles schemas one at a time, so that a large request does not delay other compilations.
 * @throws ApiError 400 with the path of each invalid schema, such as `[3].schema/properties/a`; UnavailableError on a timeout
 */
export async function requireSchemas(
  { schemas, stopping }: CheckSchemasDeps,
  { organizationId: lane }: { readonly organizationId: string },
  sources: readonly { readonly path: string; readonly schema: JsonSchema | null }[],
): Promise<void> {
  const timeout = AbortSignal.timeout(MAX_CHECK_MS);
  const signal = AbortSignal.any([stopping, timeout]);
  const findings: Finding[] = [];
  for (const { path, schema } of sources) {
    if (schema === null) continue;
    const found = await schemas.check(schema, { signal, lane }).catch((error: unknown) => {
      if (!signal.aborted) throw error;
      throw new UnavailableError("the schemas did not compile in time", { cause: error });
    });
    findings.push(...found.map((one) => ({ path: path + one.path, message: one.message })));
  }
  if (findings.length > 0) throw invalidParameters(findings);
}
