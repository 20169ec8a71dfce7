import type { Definition } from "../event/definition.ts";
import type { Finding } from "../lib/errors.ts";
import type { SchemaCompiler } from "../lib/json-schema/compiled-schema.ts";
import { err, ok, type Result } from "../lib/result.ts";
import { compileDefinitions, type DefinitionSource } from "../normalize/compile.ts";
import { findFilterErrors } from "../normalize/filter-names.ts";
import { compileRules } from "../normalize/rule-set.ts";
import type { CompiledChannel } from "./compile-channel.ts";

/**
 * Maximum number of a channel's schemas that are compiled at the same time, so that a channel with a thousand schemas cannot block other
 * channels.
 */
const MAX_SCHEMAS_AT_ONCE = 4;

/**
 * Compiles the paths and schemas of new event definitions. Returns one error per invalid field, with a path such as `events[3].idPath`.
 *
 * @throws UnavailableError if the compiler is temporarily unavailable
 */
export async function checkDefinitions(
  schemas: Pick<SchemaCompiler, "check">,
  { organizationId: lane, ...source }: DefinitionSource & { readonly organizationId: string },
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const { definitions } = source;
  const compiled = compileDefinitions(source);
  const findings: Finding[] = compiled.ok ? [] : [...compiled.error];
  const waiting = definitions.entries();
  const compileWaiting = async (): Promise<void> => {
    for (const [index, definition] of waiting) {
      for (const field of ["when", "schema"] as const) {
        const schema = definition[field];
        if (schema === undefined) continue;
        const errors = await schemas.check(schema, { signal, lane });
        const unseen =
          field === "when" && errors.length === 0 ? findFilterErrors(schema, source.profile) : [];
        for (const { path, message } of [...errors, ...unseen])
          findings.push({ path: `events[${index}].${field}${path}`, message });
      }
    }
  };
  await Promise.all(Array.from({ length: MAX_SCHEMAS_AT_ONCE }, compileWaiting));
  return findings;
}

/**
 * Returns a copy of the channel with other event definitions, for a preview. Returns errors if the definitions are invalid.
 *
 * @throws UnavailableError if the compiler is temporarily unavailable
 */
export async function tryDefinitions(
  schemas: Pick<SchemaCompiler, "check">,
  channel: CompiledChannel,
  definitions: readonly Definition[],
  signal: AbortSignal,
): Promise<Result<CompiledChannel, readonly Finding[]>> {
  const { identity, config, rules: activeRules } = channel;
  const { organizationId } = identity;
  const { profile, reading, topics } = activeRules;
  const source = { profile, config, definitions, reading };
  const findings = await checkDefinitions(schemas, { ...source, organizationId }, signal);
  if (findings.length > 0) return err(findings);
  const rules = compileRules({ ...source, channel: identity, topics });
  return rules.ok ? ok({ ...channel, rules: rules.value }) : rules;
}
