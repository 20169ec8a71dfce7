import { z } from "zod";
import { type ChannelConfig, type ChannelKindName, channelUidSchema } from "../event/channel.ts";
import { text } from "../event/config-fields.ts";
import { type Definition, definitionsSchema, fillPaths } from "../event/definition.ts";
import { withoutNulls } from "../http/without-nulls.ts";
import type { WrongField } from "../lib/check-fields.ts";
import type { Finding } from "../lib/errors.ts";
import { findingsOf, formatPath } from "../lib/findings.ts";
import { suggestNearest } from "../lib/nearest.ts";
import { err, ok, type Result } from "../lib/result.ts";
import { findPadded } from "../lib/secrets/padded.ts";
import type { DefinitionSource } from "../normalize/compile.ts";
import type { Presets } from "../verify/presets.ts";
import { resolveSender } from "../verify/sender.ts";
import { senderConfigSchema } from "../verify/sender-config.ts";
import { channelKindNameSchema } from "./entity.ts";
import type { ChannelKinds } from "./kind.ts";

/** Example channel in the API documentation. It must be complete and valid. */
export const CHANNEL_EXAMPLE = {
  uid: "main",
  kind: "webhook",
  events: [{ type: "push", idPath: "$.id", schema: { type: "object" } }],
};

/** A channel as an API client writes it. The channel kind validates `config` later. */
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
    description: "A channel in a blueprint. Installing the blueprint's app creates the channel.",
    configOf: "copied",
  });

export type ChannelInput = z.output<typeof channelInputSchema>;

export interface ChargedDefinitions extends DefinitionSource {
  /** Organization that is charged for the CPU time of the compilation. */
  readonly organizationId: string;
}

/**
 * Compiles all paths and schemas of a channel. Returns one error per invalid field, with a path such as `events[3].idPath` or
 * `config.itemsPath`.
 */
export type CheckDefinitions = (source: ChargedDefinitions) => Promise<readonly Finding[]>;

export interface CheckChannelDeps {
  readonly channelKinds: ChannelKinds;
  readonly checkDefinitions: CheckDefinitions;
  readonly presets: Presets;
}

export interface UncheckedChannel {
  readonly kind: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly events: readonly Definition[];
  /** Secret settings that are already stored, which new rules for secrets do not reject. */
  readonly storedSecrets?: Readonly<Record<string, unknown>>;
}

/** Validated settings with defaults. Secret settings are in a separate field. */
export interface CheckedChannel {
  readonly kind: ChannelKindName;
  readonly config: Readonly<Record<string, unknown>>;
  readonly secrets: Readonly<Record<string, unknown>>;
  readonly events: readonly Definition[];
  readonly retention: ChannelConfig["retention"];
  readonly state: "active" | "needsSetup";
}

/** Event definitions of a channel that has a preset but no definitions of its own. All its events get this type. */
const CATCH_ALL_DEFINITIONS: readonly Definition[] = [{ type: "received", typePath: null }];

/** Validates the settings and compiles the event definitions. The organization is charged for the CPU time. */
export async function checkChannel(
  deps: CheckChannelDeps,
  channel: UncheckedChannel,
  organizationId: string,
): Promise<Result<CheckedChannel, readonly Finding[]>> {
  const kind = deps.channelKinds.get(channel.kind);
  if (!kind) {
    const kinds = [...deps.channelKinds.keys()];
    const message = `must be one of ${kinds.join(", ")}${suggestNearest(channel.kind, kinds)}`;
    return err([{ path: "kind", message }]);
  }
  const given = withoutNulls(kind.configSchema, channel.config) as UncheckedChannel["config"];
  const input = kind.addressed ? withPresetDefaults(given, deps.presets) : given;
  const parsed = kind.configSchema.safeParse(input);
  if (!parsed.success) return err(findingsOf(parsed.error, input, ["config"]));
  const config = parsed.data;
  if (config.dedupe.ignore !== undefined && config.dedupe.by !== "content") {
    const message = "must not be set unless `by` is `content`, because events are compared by their id";
    return err([{ path: "config.dedupe.ignore", message }]);
  }
  if (channel.events.length > 0 && kind.reconcileOf?.(config) !== undefined) {
    const message =
      "must be empty with `reconciles`, because the definitions of the reconciled channel apply";
    return err([{ path: "events", message }]);
  }
  const sender = resolveSender(senderConfigSchema.parse(kind.addressed ? config : {}), deps.presets);
  if (!sender.ok) return err(sender.error.map(toFinding));
  const ofStream = kind.fromStream?.(given, config);
  const entries = Object.entries(ofStream?.config ?? config);
  const isSecret = ([name]: [string, unknown]): boolean => kind.secretFields.includes(name);
  const secrets = Object.fromEntries(entries.filter(isSecret));
  const padded = findPadded(secrets, channel.storedSecrets);
  if (padded.length > 0) return err(padded.map(toFinding));
  const ofPreset =
    ofStream?.definitions ?? (kind.addressed && "preset" in config ? CATCH_ALL_DEFINITIONS : []);
  const definitions = channel.events.length === 0 ? ofPreset : channel.events;
  const { paths, reading } = sender.value;
  const findings = await deps.checkDefinitions({
    profile: kind.profile,
    config: { ...config, itemsPath: config.itemsPath ?? paths.itemsPath },
    definitions: fillPaths(definitions, paths),
    reading,
    organizationId,
  });
  if (findings.length > 0) return err(findings);
  return ok({
    kind: kind.kind,
    config: Object.fromEntries(entries.filter((entry) => !isSecret(entry))),
    secrets,
    events: definitions,
    retention: config.retention,
    state: kind.needsSetup({ ...config }, deps.presets) ? "needsSetup" : "active",
  });
}

/**
 * Adds the default settings of the preset. Settings that the channel sets itself take precedence. The result is stored with the channel.
 */
function withPresetDefaults(config: UncheckedChannel["config"], presets: Presets): unknown {
  const preset = typeof config.preset === "string" ? presets.get(config.preset) : undefined;
  const { dedupe = {} } = config;
  if (preset === undefined || typeof dedupe !== "object" || dedupe === null) return config;
  const { onConflict } = preset;
  // The paths of the preset belong to its `by`. They are invalid or unwanted if the channel recognizes duplicates in its own way.
  const recognition = "by" in dedupe ? undefined : preset.dedupe;
  if (onConflict === undefined && recognition === undefined) return config;
  return { ...config, dedupe: { ...(onConflict && { onConflict }), ...recognition, ...dedupe } };
}

const toFinding = ({ path, message }: WrongField): Finding => ({
  path: formatPath(["config", ...path]),
  message,
});

/**
 * Returns an error for each setting that a blueprint must not contain: secrets, because blueprints can be read and copied, and settings of
 * one installation.
 */
export function findUnsharedFields(deps: CheckChannelDeps, channel: UncheckedChannel): readonly Finding[] {
  const { secretFields = [], installationFields = [] } = deps.channelKinds.get(channel.kind) ?? {};
  const find = (names: readonly string[], reason: string): readonly Finding[] =>
    names
      .filter((name) => Object.hasOwn(channel.config, name))
      .map((name) => ({
        path: `config.${name}`,
        message: `must not be set in a blueprint, because ${reason}; set it on the channel of an installed app`,
      }));
  return [
    ...find(secretFields, "it is secret"),
    ...find(installationFields, "it belongs to one installation"),
  ];
}
