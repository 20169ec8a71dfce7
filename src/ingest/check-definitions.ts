import type { ChannelConfig } from "../event/channel.ts";
import type { Definition } from "../event/definition.ts";
import type { Finding } from "../lib/errors.ts";
import type { SchemaCompiler } from "../lib/json-schema/compiled-schema.ts";
import { err, ok, type Result } from "../lib/result.ts";
import { compileRules } from "../normalize/compile.ts";
import type { KindProfile } from "../normalize/profile.ts";
import type { CompiledChannel } from "./compiled-channel.ts";

/**
 * Maximum number of a channel's schemas that are compiled at the same time, so that a channel with a thousand schemas cannot block other
 * channels.
 */
const MAX_SCHEMAS_AT_ONCE = 4;

/** Stands for a channel that does not exist yet. Its values do not affect the compilation. */
const PLACEHOLDER_CHANNEL = { number: 0, uid: "unborn", kind: "", appId: "", organizationId: "" };

/**
 * Compiles the paths and schemas of new event definitions. Returns one error per invalid field, with a path such as `events[3].idPath`.
 *
 * @throws UnavailableError if the compiler is temporarily unavailable
 */
export async function checkDefinitions(
  schemas: Pick<SchemaCompiler, "check">,
  source: {
    readonly profile: KindProfile;
    readonly config: ChannelConfig;
    readonly definitions: readonly Definition[];
    readonly organizationId: string;
  },
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const { profile, config, definitions, organizationId: lane } = source;
  const rules = compileRules({ channel: PLACEHOLDER_CHANNEL, profile, config, definitions });
  const findings: Finding[] = rules.ok ? [] : [...rules.error];
  const waiting = definitions.entries();
  const compileWaiting = async (): Promise<void> => {
    for (const [index, { schema }] of waiting) {
      if (schema === undefined) continue;
      for (const { path, message } of await schemas.check(schema, { signal, lane })) {
        findings.push({ path: `events[${index}].schema${path}`, message });
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
  const source = { profile: activeRules.profile, config, definitions, organizationId };
  const findings = await checkDefinitions(schemas, source, signal);
  if (findings.length > 0) return err(findings);
  const rules = compileRules({
    ...source,
    channel: identity,
    topics: activeRules.topics,
    reading: activeRules.reading,
  });
  return rules.ok ? ok({ ...channel, rules: rules.value }) : rules;
}
