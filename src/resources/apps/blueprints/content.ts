import {
  type ChannelInput,
  type CheckChannelDeps,
  checkChannel,
  findUnsharedFields,
} from "../../../channels/check-channel.ts";
import { findReconcileErrors } from "../../../channels/check-reconcile.ts";
import { findWrongWakes } from "../../../channels/check-wakes.ts";
import type { BlueprintChannel } from "../../../data/tables.ts";
import type { Finding } from "../../../lib/errors.ts";
import { findingUnder } from "../../../lib/findings.ts";
import { err, ok, type Result } from "../../../lib/result.ts";

/** Validates a blueprint's channels and fills in defaults. Each finding has a path such as `channels[0].config.dedupe`. */
export async function checkBlueprintChannels(
  deps: CheckChannelDeps,
  channels: readonly ChannelInput[],
  organizationId: string,
): Promise<Result<readonly BlueprintChannel[], readonly Finding[]>> {
  const findings: Finding[] = [];
  const checked: BlueprintChannel[] = [];
  for (const [index, channel] of channels.entries()) {
    const secrets = findUnsharedFields(deps, channel);
    const result = await checkChannel(deps, channel, organizationId);
    const found = result.ok
      ? [...secrets, ...findWrongWakes(deps.channelKinds, result.value.config, channels)]
      : [...secrets, ...result.error];
    findings.push(...found.map((finding) => findingUnder(`channels[${index}]`, finding)));
    if (result.ok) {
      const { kind, config, events } = result.value;
      checked.push({ uid: channel.uid, kind, title: channel.title, config, events });
    }
  }
  if (findings.length === 0) {
    for (const [index, channel] of checked.entries()) {
      const errors = findReconcileErrors(deps, channel, checked);
      findings.push(...errors.map((finding) => findingUnder(`channels[${index}]`, finding)));
    }
  }
  return findings.length > 0 ? err(findings) : ok(checked);
}
