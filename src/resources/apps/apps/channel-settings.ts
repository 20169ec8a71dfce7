import { z } from "zod";
import type { CheckedChannel } from "../../../channels/check-channel.ts";
import type { ChannelKind } from "../../../channels/kind.ts";
import { presetFields } from "../../../channels/polling/config/preset-stream.ts";
import type { BlueprintChannel } from "../../../data/tables.ts";
import { channelUidSchema } from "../../../event/channel.ts";
import type { Caller } from "../../../http/context.ts";
import { invalidParameters } from "../../../http/errors.ts";
import type { Finding } from "../../../lib/errors.ts";
import { suggestNearest } from "../../../lib/nearest.ts";
import { registrationConfigSchema } from "../../../verify/registration-config.ts";
import { senderConfigSchema } from "../../../verify/sender-config.ts";
import type { Deps } from "../../kit/deps.ts";
import { requireConnection } from "../channel-connection.ts";

/**
 * Settings that an installation adds to a channel of its blueprint. To add one, declare it here and apply it in this file. The API
 * reference, the console's form and the command line follow from the schema.
 */
const channelSettings = z
  .strictObject({
    secrets: senderConfigSchema.shape.secrets
      .unwrap()
      .optional()
      .describe(
        "Secrets that the sender signs with, as in the channel's `config.secrets`. They are never returned.",
      ),
    connectionId: z
      .string()
      .optional()
      .describe("Connection whose credentials the channel sends. Only for channels that fetch their events."),
    params: presetFields.params.describe(
      "Parameters of the preset's stream that the channel reads. Each replaces the blueprint's one. Upgrades of the app keep them.",
    ),
    registration: registrationConfigSchema
      .optional()
      .describe(
        "Registers the channel's address at the provider of its preset, as in the channel's `config.registration`. Upgrades of the app keep it.",
      ),
  })
  .meta({ id: "ChannelSettings", description: "Settings for one channel of an installed blueprint." });

/** Settings by the uid of the channel. */
export const channelSettingsSchema = z
  .record(channelUidSchema, channelSettings)
  .default({})
  .meta({
    description: "Settings for the channels of the blueprint, by the uid of the channel.",
    example: { main: { secrets: [{ value: "a secret that the sender knows" }] } },
  });
export type ChannelSettings = z.output<typeof channelSettings>;
export type SettingsByUid = Readonly<Record<string, ChannelSettings>>;

/** Checks the settings that need no compiled channel. @throws ApiError 400 for an unknown uid, or a setting that the kind does not have */
export function requireApplicable(
  channels: readonly BlueprintChannel[],
  settings: SettingsByUid,
  { channelKinds }: Pick<Deps, "channelKinds">,
): void {
  const uids = channels.map(({ uid }) => uid);
  const findings = Object.entries(settings).flatMap(([uid, given]): readonly Finding[] => {
    const channel = channels.find((one) => one.uid === uid);
    if (channel) return findUnknownSecrets(uid, given, channelKinds.get(channel.kind));
    const known = uids.length === 0 ? "it has none" : `it has ${uids.join(", ")}`;
    const message = `is not a channel of the blueprint (${known})${suggestNearest(uid, uids)}`;
    return [{ path: `channels.${uid}`, message }];
  });
  if (findings.length > 0) throw invalidParameters(findings);
}

function findUnknownSecrets(
  uid: string,
  { secrets }: ChannelSettings,
  kind: ChannelKind | undefined,
): readonly Finding[] {
  if (secrets === undefined || kind === undefined || kind.secretFields.includes("secrets")) return [];
  const message = `is not a setting of the kind ${kind.kind}; use connectionId for the credentials of its requests`;
  return [{ path: `channels.${uid}.secrets`, message }];
}

/**
 * Returns the fields of the channel's config that the settings replace.
 *
 * @param config the channel's config in the blueprint
 * @param before the config of the installed channel, whose parameters and registration are kept
 */
export function toConfig(
  { secrets, params, registration }: ChannelSettings,
  config: BlueprintChannel["config"] = {},
  before: BlueprintChannel["config"] = {},
): object {
  const registered = registration ?? (before.preset === config.preset ? before.registration : undefined);
  const isSameStream = before.preset === config.preset && before.stream === config.stream;
  const kept = isSameStream ? before.params : undefined;
  return {
    ...(secrets !== undefined && { secrets }),
    ...(registered !== undefined && { registration: registered }),
    ...((params ?? kept) !== undefined && {
      params: { ...Object(config.params), ...Object(kept), ...params },
    }),
  };
}

/** Returns an error of the channel's config as an error of the settings, or `undefined` if the blueprint caused it. */
export function toSettingsFinding(
  uid: string,
  settings: ChannelSettings,
  finding: Finding,
): Finding | undefined {
  const name = /^config\.(\w+)/.exec(finding.path)?.[1];
  if (name === undefined || !(name in toConfig(settings))) return undefined;
  return { path: `channels.${uid}.${finding.path.slice("config.".length)}`, message: finding.message };
}

/** Checks that the channel can use the connection. @throws ApiError 404 if it does not exist; 400 if the channel cannot use it */
export const requireConnectionOf = (
  deps: Deps,
  caller: Pick<Caller, "organizationId">,
  uid: string,
  { connectionId }: ChannelSettings,
  checked: CheckedChannel,
): Promise<void> => requireConnection(deps, caller, checked, connectionId ?? null, `channels.${uid}`);
