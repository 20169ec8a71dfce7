import { checkSettings, type SettingsDeps } from "../../../channels/settings.ts";
import { openSettings } from "../../../data/channels/channel-secrets.ts";
import type { NewChannel } from "../../../data/channels/channels.ts";
import type { Keyring } from "../../../data/keyring/keyring.ts";
import type { BlueprintChannel, BlueprintRow, ChannelRow } from "../../../data/tables.ts";
import { findingUnder } from "../../../http/findings.ts";
import { ApiError } from "../../../http/problem.ts";
import type { Finding } from "../../../lib/errors.ts";
import { verifiesSenders } from "../../../verify/sender.ts";

/** A channel as its blueprint has it now, and the one of that uid that the app has already. */
export interface PlannedChannel {
  readonly content: NewChannel;
  readonly before: ChannelRow | undefined;
}

/**
 * The blueprint's channels as they would be written now, with the secrets of those that are there.
 *
 * @throws ApiError 409 when a kind no longer accepts what it did when the blueprint was written, or is not that of the channel
 * that the app has under that uid.
 */
export async function planChannels(
  deps: SettingsDeps & { readonly keyring: Keyring },
  blueprint: BlueprintRow,
  present: readonly ChannelRow[],
  organizationId: string,
): Promise<readonly PlannedChannel[]> {
  const byUid = new Map(present.map((row) => [row.uid, row]));
  const planned: PlannedChannel[] = [];
  const findings: Finding[] = [];
  for (const [index, { uid, title, ...settings }] of blueprint.channels.entries()) {
    const before = byUid.get(uid);
    if (before && before.kind !== settings.kind) {
      findings.push({
        path: `channels[${index}].kind`,
        message: `the app's channel ${uid} is ${before.kind}`,
      });
      continue;
    }
    const secrets = before ? openSettings(deps.keyring, before) : {};
    const config = { ...withOwnSender(deps, before, settings.config), ...secrets };
    const checked = await checkSettings(deps, { ...settings, config }, organizationId);
    if (checked.ok) planned.push({ content: { ...checked.value, uid, title, fromBlueprint: true }, before });
    else findings.push(...checked.error.map((finding) => findingUnder(`channels[${index}]`, finding)));
  }
  if (findings.length > 0) {
    throw new ApiError("conflict", "The blueprint must be changed before it can be installed.", {
      details: findings,
    });
  }
  return planned;
}

/**
 * A blueprint whose channel believes anyone, in whichever way it says so, never opens a channel whose senders are verified: that
 * is done on the channel itself.
 */
function withOwnSender(
  { presets }: SettingsDeps,
  before: ChannelRow | undefined,
  config: BlueprintChannel["config"],
): BlueprintChannel["config"] {
  if (!before || !verifiesSenders(before.config, presets) || verifiesSenders(config, presets)) return config;
  const { preset: _, ...others } = config;
  const { verification, shadow, preset } = before.config;
  return { ...others, verification, shadow, ...(preset === undefined ? {} : { preset }) };
}
