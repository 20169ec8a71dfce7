import { type CheckChannelDeps, checkChannel } from "../../../channels/check-channel.ts";
import { openSecrets } from "../../../data/channels/channel-secrets.ts";
import type { NewChannel } from "../../../data/channels/channels.ts";
import type { Keyring } from "../../../data/keyring/keyring.ts";
import type { BlueprintChannel, BlueprintRow, ChannelRow } from "../../../data/tables.ts";
import { ApiError } from "../../../http/errors.ts";
import type { Finding } from "../../../lib/errors.ts";
import { findingUnder } from "../../../lib/findings.ts";
import { verifiesSenders } from "../../../verify/sender.ts";

export interface PlannedChannel {
  readonly content: NewChannel;
  /** The app's existing channel with the same uid, or `undefined` if the channel will be created. */
  readonly before: ChannelRow | undefined;
}

/**
 * Determines the channels to create or update for a blueprint, with a validated config. Existing channels keep their secrets.
 *
 * @param present the app's existing channels
 * @throws ApiError 409 if a channel kind no longer accepts the config in the blueprint, or if the app has a channel with the same uid but
 * another kind
 */
export async function planChannels(
  deps: CheckChannelDeps & { readonly keyring: Keyring },
  blueprint: BlueprintRow,
  present: readonly ChannelRow[],
  organizationId: string,
): Promise<readonly PlannedChannel[]> {
  const byUid = new Map(present.map((row) => [row.uid, row]));
  const planned: PlannedChannel[] = [];
  const findings: Finding[] = [];
  for (const [index, { uid, title, ...channel }] of blueprint.channels.entries()) {
    const before = byUid.get(uid);
    if (before && before.kind !== channel.kind) {
      findings.push({
        path: `channels[${index}].kind`,
        message: `must be ${before.kind}, the kind of the app's channel ${uid}`,
      });
      continue;
    }
    const secrets = before ? openSecrets(deps.keyring, before) : {};
    const config = { ...keepVerification(deps, before, channel.config), ...secrets };
    const checked = await checkChannel(deps, { ...channel, config }, organizationId);
    if (checked.ok) planned.push({ content: { ...checked.value, uid, title, fromBlueprint: true }, before });
    else findings.push(...checked.error.map((finding) => findingUnder(`channels[${index}]`, finding)));
  }
  if (findings.length > 0) {
    throw new ApiError("conflict", "The blueprint has invalid channels. Fix the channels in `details`.", {
      details: findings,
    });
  }
  return planned;
}

/**
 * Keeps the channel's verification settings when the blueprint has verification turned off. Only a change to the
 * channel itself may turn verification off.
 */
function keepVerification(
  { presets }: CheckChannelDeps,
  before: ChannelRow | undefined,
  config: BlueprintChannel["config"],
): BlueprintChannel["config"] {
  if (!before || !verifiesSenders(before.config, presets) || verifiesSenders(config, presets)) return config;
  const { preset: _, ...others } = config;
  const { verification, shadow, preset } = before.config;
  return { ...others, verification, shadow, ...(preset === undefined ? {} : { preset }) };
}
