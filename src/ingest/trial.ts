import type { Definition } from "../event/definition.ts";
import type { Finding } from "../lib/errors.ts";
import { ok, type Result } from "../lib/result.ts";
import { compileRules } from "../normalize/compile.ts";
import type { LiveChannel } from "./live-channel.ts";

/** The channel as it would be with other definitions, to be explained by and never published to. */
export function tryDefinitions(
  channel: LiveChannel,
  definitions: readonly Definition[],
): Result<LiveChannel, readonly Finding[]> {
  const { identity, config, rules: inForce } = channel;
  const rules = compileRules({ channel: identity, profile: inForce.profile, config, definitions });
  return rules.ok ? ok({ ...channel, rules: rules.value }) : rules;
}
