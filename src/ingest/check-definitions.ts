import type { CommonSettings } from "../event/channel.ts";
import type { Definition } from "../event/definition.ts";
import type { Finding } from "../lib/errors.ts";
import type { SchemaCompiler } from "../lib/json-schema/compiled-schema.ts";
import { err, ok, type Result } from "../lib/result.ts";
import { compileRules } from "../normalize/compile.ts";
import type { KindProfile } from "../normalize/profile.ts";
import type { CompiledChannel } from "./compiled-channel.ts";

/** How many schemas of one channel wait for the compiler at a time: a thousand must not stand before another channel's one. */
const MAX_SCHEMAS_AT_ONCE = 4;

/** Of no channel yet: what stands in its place has no bearing on whether a definition compiles. */
const PLACEHOLDER_CHANNEL = { number: 0, uid: "unborn", kind: "", appId: "", organizationId: "" };

/**
 * Compiles what a channel is about to be given and tells what does not, under paths like `events[3].idPath`,
 * `events[3].schema/properties/a` and `config.itemsPath`.
 *
 * @throws UnavailableError when the compiler cannot tell now.
 */
export async function checkDefinitions(
  schemas: Pick<SchemaCompiler, "check">,
  source: {
    readonly profile: KindProfile;
    readonly config: CommonSettings;
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
 * The channel as it would be with other definitions, to be explained by and never published to; findings where the channel could
 * not be given them.
 *
 * @throws UnavailableError when the compiler cannot tell now.
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
  const rules = compileRules({ ...source, channel: identity, topics: activeRules.topics, forms: activeRules.forms });
  return rules.ok ? ok({ ...channel, rules: rules.value }) : rules;
}
