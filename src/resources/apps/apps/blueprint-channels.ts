import { checkChannel } from "../../../channels/check-channel.ts";
import { findReconcileErrors } from "../../../channels/check-reconcile.ts";
import { openSecrets } from "../../../data/channels/channel-secrets.ts";
import type { NewChannel } from "../../../data/channels/channels.ts";
import type { BlueprintChannel, BlueprintRow, ChannelRow } from "../../../data/tables.ts";
import type { Caller } from "../../../http/context.ts";
import { ApiError, invalidParameters } from "../../../http/errors.ts";
import type { Finding } from "../../../lib/errors.ts";
import { findingUnder } from "../../../lib/findings.ts";
import { verifiesSenders } from "../../../verify/sender.ts";
import type { Deps } from "../../kit/deps.ts";
import { requireRegistration } from "../channel-registration.ts";
import {
  requireApplicable,
  requireConnectionOf,
  type SettingsByUid,
  toConfig,
  toSettingsFinding,
} from "./channel-settings.ts";

export interface PlannedChannel {
  readonly content: NewChannel;
  /** The app's existing channel with the same uid, or `undefined` if the channel will be created. */
  readonly before: ChannelRow | undefined;
}

/**
 * Determines the channels to create or update for a blueprint, with a validated config. Existing channels keep their secrets.
 *
 * @param present the app's existing channels
 * @param settings settings that a new installation adds to the channels
 * @throws ApiError 400 for an invalid setting; 403 if the caller may not use a connection; 404 if the connection does not exist
 * @throws ApiError 409 if a channel kind no longer accepts the config in the blueprint, or if the app has a channel with the same uid but
 * another kind
 */
export async function planChannels(
  deps: Deps,
  blueprint: BlueprintRow,
  present: readonly ChannelRow[],
  caller: Caller,
  settings: SettingsByUid = {},
): Promise<readonly PlannedChannel[]> {
  requireApplicable(blueprint.channels, settings, deps);
  const byUid = new Map(present.map((row) => [row.uid, row]));
  const planned: PlannedChannel[] = [];
  const findings: Finding[] = [];
  const settingsFindings: Finding[] = [];
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
    const given = settings[uid] ?? {};
    const ofBlueprint = keepVerification(deps, before, channel.config);
    const config = { ...ofBlueprint, ...secrets, ...toConfig(given, ofBlueprint, before?.config) };
    const unchecked = { ...channel, config, storedSecrets: secrets };
    const checked = await checkChannel(deps, unchecked, caller.organizationId);
    if (checked.ok) {
      await requireConnectionOf(deps, caller, uid, given, checked.value);
      if (given.registration !== undefined)
        await requireRegistration(deps, caller, checked.value.config, `channels.${uid}.registration`);
      const { connectionId } = given;
      const connected = connectionId === undefined ? {} : { connectionId };
      const content = { ...checked.value, ...connected, uid, title, fromBlueprint: true };
      planned.push({ content, before });
      continue;
    }
    for (const finding of checked.error) {
      const ofSettings = toSettingsFinding(uid, given, finding);
      if (ofSettings) settingsFindings.push(ofSettings);
      else findings.push(findingUnder(`channels[${index}]`, finding));
    }
  }
  if (findings.length === 0) {
    const kept = present.filter(({ uid }) => !planned.some(({ content }) => content.uid === uid));
    const all = [...planned.map(({ content }) => content), ...kept];
    for (const [index, { content }] of planned.entries()) {
      const errors = findReconcileErrors(deps, content, all);
      findings.push(...errors.map((finding) => findingUnder(`channels[${index}]`, finding)));
    }
  }
  if (settingsFindings.length > 0) throw invalidParameters(settingsFindings);
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
  { channelKinds, presets }: Deps,
  before: ChannelRow | undefined,
  config: BlueprintChannel["config"],
): BlueprintChannel["config"] {
  if (!before || channelKinds.get(before.kind)?.addressed !== true) return config;
  if (!verifiesSenders(before.config, presets) || verifiesSenders(config, presets)) return config;
  const { preset: _, ...others } = config;
  const { verification, shadow, preset } = before.config;
  return { ...others, verification, shadow, ...(preset === undefined ? {} : { preset }) };
}
