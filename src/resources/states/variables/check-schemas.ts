import { invalidParameters } from "../../../http/problem.ts";
import { type Finding, UnavailableError } from "../../../lib/errors.ts";
import type { JsonSchema, SchemaCompiler } from "../../../lib/json-schema/compiled-schema.ts";

export interface CheckSchemasDeps {
  readonly schemas: Pick<SchemaCompiler, "check">;
  /** Aborts when the gateway ends. */
  readonly stopping: AbortSignal;
}

/** One request takes this long at most. Schemas that were compiled by then are kept: a retry goes on from there. */
const MAX_CHECK_MS = 20_000;

/**
 * Each of the schemas compiles, where there is one; they are compiled by the worker thread, one after the other, so that those
 * of a request never stand all before a channel's one.
 *
 * @throws ApiError 400 that names what does not, under paths like `[3].schema/properties/a`; UnavailableError when that cannot
 * be told now
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
      throw new UnavailableError("the schemas were not compiled in time", { cause: error });
    });
    findings.push(...found.map((one) => ({ path: path + one.path, message: one.message })));
  }
  if (findings.length > 0) throw invalidParameters(findings);
}
