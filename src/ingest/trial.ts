import type { Definition } from "../event/definition.ts";
import type { Finding } from "../lib/errors.ts";
import type { SchemaCompiler } from "../lib/json-schema/compiled-schema.ts";
import { err, ok, type Result } from "../lib/result.ts";
import { compileRules } from "../normalize/compile.ts";
import { checkDefinitions } from "./check-definitions.ts";
import type { LiveChannel } from "./live-channel.ts";

/**
 * The channel as it would be with other definitions, to be explained by and never published to; findings where the channel could
 * not be given them.
 *
 * @throws UnavailableError when the compiler cannot tell now.
 */
export async function tryDefinitions(
  schemas: Pick<SchemaCompiler, "compile">,
  channel: LiveChannel,
  definitions: readonly Definition[],
  signal: AbortSignal,
): Promise<Result<LiveChannel, readonly Finding[]>> {
  const { identity, config, rules: inForce } = channel;
  const source = { profile: inForce.profile, config, definitions };
  const findings = await checkDefinitions(schemas, source, signal);
  if (findings.length > 0) return err(findings);
  const rules = compileRules({ ...source, channel: identity, topics: inForce.topics, forms: inForce.forms });
  return rules.ok ? ok({ ...channel, rules: rules.value }) : rules;
}
