import { z } from "zod";
import { type ChannelKindName, type CommonSettings, channelUidSchema } from "../event/channel.ts";
import { type Definition, definitionsSchema, fillPaths } from "../event/definition.ts";
import { text } from "../event/setting-fields.ts";
import { findingsOf, formatPath } from "../http/findings.ts";
import { withoutNulls } from "../http/without-nulls.ts";
import type { WrongSetting } from "../lib/check-settings.ts";
import type { Finding } from "../lib/errors.ts";
import { err, ok, type Result } from "../lib/result.ts";
import type { KindProfile } from "../normalize/profile.ts";
import type { Presets } from "../verify/presets.ts";
import { resolveSender } from "../verify/sender.ts";
import { senderConfigSchema } from "../verify/sender-settings.ts";
import { channelKindNameSchema } from "./entity.ts";
import type { ChannelKinds } from "./kind.ts";

/** One that works as it stands. */
export const CHANNEL_EXAMPLE = { uid: "main", kind: "webhook", events: [{ type: "push", idPath: "$.id" }] };

/** A channel as it is written in a blueprint or to an app; `config` is for its kind to read. */
export const channelInputSchema = z
  .strictObject({
    uid: channelUidSchema,
    kind: channelKindNameSchema,
    title: text(255).nullable().default(null),
    config: z.record(z.string(), z.unknown()).default({}),
    events: definitionsSchema.default([]),
  })
  .meta({
    id: "BlueprintChannel",
    description: "A channel as apps are installed with it.",
    configOf: "copied",
  });

export type ChannelInput = z.output<typeof channelInputSchema>;

/** The parts of a channel that must compile: paths and schemas. */
export interface DefinitionSource {
  readonly profile: KindProfile;
  readonly config: CommonSettings;
  readonly definitions: readonly Definition[];
  /** On whose behalf it is compiled. */
  readonly organizationId: string;
}

/** Compiles it all and tells what does not, under paths like `events[3].idPath` and `config.itemsPath`. */
export type CheckDefinitions = (source: DefinitionSource) => Promise<readonly Finding[]>;

export interface SettingsDeps {
  readonly channelKinds: ChannelKinds;
  readonly checkDefinitions: CheckDefinitions;
  readonly presets: Presets;
}

/** The part of a channel that its kind reads. */
export interface ChannelSettings {
  readonly kind: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly events: readonly Definition[];
}

/** Settings that the kind accepts: defaults filled in, the secret ones taken apart. */
export interface CheckedSettings {
  readonly kind: ChannelKindName;
  readonly config: Readonly<Record<string, unknown>>;
  readonly secrets: Readonly<Record<string, unknown>>;
  readonly events: readonly Definition[];
  readonly retention: CommonSettings["retention"];
  readonly state: "active" | "needsSetup";
}

/** A channel with a preset and no definitions publishes all that comes, as one type. */
const ALL_OF_PRESET: readonly Definition[] = [{ type: "received", typePath: null }];

/** Checks a channel's settings by its kind, its definitions by compiling them on behalf of the organization. */
export async function checkSettings(
  deps: SettingsDeps,
  settings: ChannelSettings,
  organizationId: string,
): Promise<Result<CheckedSettings, readonly Finding[]>> {
  const kind = deps.channelKinds.get(settings.kind);
  if (!kind) {
    const message = `must be one of ${[...deps.channelKinds.keys()].join(", ")}`;
    return err([{ path: "kind", message }]);
  }
  const given = withoutNulls(kind.settings, settings.config) as ChannelSettings["config"];
  const parsed = kind.settings.safeParse(withPresetDefaults(given, deps.presets));
  if (!parsed.success) return err(findingsOf(parsed.error, ["config"]));
  const config = parsed.data;
  const sender = resolveSender(senderConfigSchema.parse(config), deps.presets);
  if (!sender.ok) return err(sender.error.map(asFinding));
  const definitions = "preset" in config && settings.events.length === 0 ? ALL_OF_PRESET : settings.events;
  const { paths } = sender.value;
  const findings = await deps.checkDefinitions({
    profile: kind.profile,
    config: { ...config, itemsPath: config.itemsPath ?? paths.itemsPath },
    definitions: fillPaths(definitions, paths),
    organizationId,
  });
  if (findings.length > 0) return err(findings);
  const entries = Object.entries(config);
  const isSecret = ([name]: [string, unknown]): boolean => kind.secretSettings.includes(name);
  return ok({
    kind: kind.kind,
    config: Object.fromEntries(entries.filter((entry) => !isSecret(entry))),
    secrets: Object.fromEntries(entries.filter(isSecret)),
    events: definitions,
    retention: config.retention,
    state: kind.needsSetup({ ...config }, deps.presets) ? "needsSetup" : "active",
  });
}

/** As all defaults it is filled in when it is written; what is set wins. */
function withPresetDefaults(config: ChannelSettings["config"], presets: Presets): unknown {
  const { onConflict } = (typeof config.preset === "string" && presets.get(config.preset)) || {};
  const { dedupe = {} } = config;
  if (onConflict === undefined || typeof dedupe !== "object" || dedupe === null) return config;
  return { ...config, dedupe: { onConflict, ...dedupe } };
}

const asFinding = ({ path, message }: WrongSetting): Finding => ({
  path: formatPath(["config", ...path]),
  message,
});

/** The secret settings that stand in settings where none may: in blueprints, which are read and copied. */
export function findSecretSettings(deps: SettingsDeps, settings: ChannelSettings): readonly Finding[] {
  const kind = deps.channelKinds.get(settings.kind);
  return (kind?.secretSettings ?? [])
    .filter((name) => Object.hasOwn(settings.config, name))
    .map((name) => ({
      path: `config.${name}`,
      message: "is a secret: set it on the channel of an installed app",
    }));
}
