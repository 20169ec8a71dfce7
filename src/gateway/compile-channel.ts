import { hash } from "node:crypto";
import type { ChannelKind, ChannelKinds } from "../channels/kind.ts";
import { readStoredSettings } from "../channels/stored-settings.ts";
import type { LiveChannel as StoredChannel } from "../data/channels/live-channels.ts";
import type { ChannelKindName, CommonSettings } from "../event/channel.ts";
import { fillPaths } from "../event/definition.ts";
import type { LiveChannel, Shared } from "../ingest/live-channel.ts";
import { UnavailableError } from "../lib/errors.ts";
import { createInterned } from "../lib/interned.ts";
import { bodyFormatOf } from "../normalize/body/bodies.ts";
import { type CompiledDefinitions, compileDefinitions, rulesOf } from "../normalize/compile.ts";
import type { PathCache } from "../normalize/paths/jsonpath.ts";
import { boundWaiting } from "../verify/keys/bounded-waiting.ts";
import type { KeySource } from "../verify/keys/key-source.ts";
import type { Presets } from "../verify/presets.ts";
import { resolveSender, type Sender } from "../verify/sender.ts";
import { senderConfigSchema } from "../verify/sender-settings.ts";
import type { RefusalReason } from "../verify/verifier.ts";
import {
  type CompiledSender,
  compileSender,
  compileSenderProgram,
  type SenderDeps,
  type SenderProgram,
} from "../verify/verify.ts";

export interface CompileDeps extends Omit<SenderDeps, "onShadowed" | "keys"> {
  readonly keysOf: (organizationId: string) => KeySource;
  readonly channelKinds: ChannelKinds;
  readonly pathsOf: PathCache;
  readonly presets: Presets;
  /** Told of each request that is accepted only because its channel tries its settings out. */
  readonly onShadowed: (kind: ChannelKindName, reason: RefusalReason) => void;
}

/** All that channels share whose settings and definitions differ in their secrets alone. */
interface SharedSettings extends Pick<LiveChannel, "answer" | "acceptsContentType">, Shared {
  readonly verification: NonNullable<LiveChannel["verification"]>;
  /** Without the secret ones. */
  readonly settings: CommonSettings;
  readonly definitions: CompiledDefinitions;
  readonly program: SenderProgram;
  readonly senderDeps: SenderDeps;
}

/** All that channels share whose settings and definitions are equal. */
interface SharedContent
  extends Pick<
      LiveChannel,
      "limits" | "settings" | "methods" | "answer" | "acceptsContentType" | "config" | "shares"
    >,
    Pick<SharedSettings, "verification"> {
  readonly definitions: CompiledDefinitions;
  readonly sender: CompiledSender;
  /** For senders whose keys are fetched: each organization, and each channel, waits for itself. */
  readonly senderOf: ((organizationId: string) => CompiledSender) | undefined;
}

/**
 * Makes stored channels ready to receive. What is stored did compile when it was written; where it no longer does, the channel is
 * out of order until that is mended, and its senders are told to try again.
 *
 * Channels of one blueprint have the same settings and definitions: what is made of these is shared, whichever organizations they
 * belong to, for as long as one of them is in use. Beside it a channel has little more than its names.
 *
 * @returns a function that throws UnavailableError where the channel is out of order
 */
export function createCompileChannel(deps: CompileDeps): (stored: StoredChannel) => LiveChannel {
  const contents = createInterned<SharedContent>();
  const settings = createInterned<SharedSettings>();

  function compileContent(
    kind: ChannelKind,
    stored: StoredChannel,
    text: ContentText,
    settingsKey: string,
  ): SharedContent {
    const { number } = stored.identity;
    const read = readStoredSettings(kind.settings, stored.settings);
    if (!read.ok) {
      throw new UnavailableError(`channel ${number} has settings that no longer fit`, {
        cause: new Error(read.error.map(({ path, message }) => `${path}: ${message}`).join("; ")),
      });
    }
    const parsed = read.value.settings;
    // What decides who may send is held to the schema of today.
    const senderConfig = senderConfigSchema.safeParse(parsed);
    if (!senderConfig.success) {
      throw new UnavailableError(`channel ${number} has verification that no longer fits`, {
        cause: senderConfig.error,
      });
    }
    const resolved = resolveSender(senderConfig.data, deps.presets);
    if (!resolved.ok) {
      throw new UnavailableError(`channel ${number} has a sender that can no longer be verified`, {
        cause: new Error(
          resolved.error.map(({ path, message }) => `${path.join(".")}: ${message}`).join("; "),
        ),
      });
    }
    const sender = resolved.value;
    const shared = settings(settingsKey, () => {
      const shown = withoutSecrets(kind, parsed);
      const preset = senderConfig.data.preset ?? null;
      return compileSettings(kind, stored, shown, { sender, preset, text });
    });
    // Equal but for the secrets: what stands below is shared.
    const own = { ...shared.settings, ...onlySecrets(kind, parsed) };
    const config = { ...own, itemsPath: own.itemsPath ?? sender.paths.itemsPath };
    const compiled = compileSender(sender, shared.senderDeps, shared.program);
    const { answer, acceptsContentType, verification, definitions } = shared;
    return {
      ...{ answer, acceptsContentType, verification, definitions, config },
      limits: own.limits,
      settings: own,
      methods: compiled.methods,
      shares: [shared, { bytes: CONTENT_BYTES + EXPANSION * text.secrets.length }],
      sender: compiled,
      senderOf: compiled.fetchesKeys ? sendersOf(sender, shared) : undefined,
    };
  }

  function compileSettings(
    kind: ChannelKind,
    { identity, definitions }: StoredChannel,
    shown: CommonSettings,
    { sender, preset, text }: { sender: Sender; preset: string | null; text: ContentText },
  ): SharedSettings {
    const { profile } = kind;
    const { paths, forms, readAs, answer, verification } = sender;
    const compiled = compileDefinitions(
      {
        ...{ profile, forms, definitions: fillPaths(definitions, paths) },
        config: { ...shown, itemsPath: shown.itemsPath ?? paths.itemsPath },
      },
      deps.pathsOf,
    );
    if (!compiled.ok) {
      throw new UnavailableError(`channel ${identity.number} has definitions that no longer compile`, {
        cause: new Error(compiled.error.map(({ path, message }) => `${path}: ${message}`).join("; ")),
      });
    }
    return {
      settings: shown,
      answer,
      acceptsContentType:
        profile.acceptsContentType ?? ((contentType) => bodyFormatOf(readAs ?? contentType) !== undefined),
      verification: { scheme: String(verification.scheme), preset },
      definitions: compiled.value,
      program: compileSenderProgram(sender),
      senderDeps: {
        hooksUrl: deps.hooksUrl,
        keys: NO_KEYS,
        onShadowed: (reason) => deps.onShadowed(kind.kind, reason),
      },
      bytes: SETTINGS_BYTES + EXPANSION * (text.settings.length + text.definitions.length),
    };
  }

  const sendersOf =
    (sender: Sender, { senderDeps, program }: SharedSettings) =>
    (organizationId: string): CompiledSender =>
      compileSender(sender, { ...senderDeps, keys: boundWaiting(deps.keysOf(organizationId)) }, program);

  return (stored) => {
    const { version, state, pause, topics, connectionId } = stored;
    const kind = deps.channelKinds.get(stored.identity.kind);
    if (kind === undefined) throw new UnavailableError(`there is no channel kind ${stored.identity.kind}`);
    const text = textOf(kind, stored);
    const settingsKey = hash("sha256", `${kind.kind}\n${text.settings}\n${text.definitions}`, "base64url");
    const contentKey = hash("sha256", `${settingsKey}\n${text.secrets}`, "base64url");
    const { definitions, senderOf, ...content } = contents(contentKey, () =>
      compileContent(kind, stored, text, settingsKey),
    );
    const identity = { ...stored.identity, kind: kind.kind };
    return {
      ...content,
      identity,
      version,
      connectionId,
      state,
      pause,
      ...(content.config.deliveryRecords && { sampling: { nextAtMs: 0, nextPoorAtMs: 0 } }),
      rules: rulesOf(definitions, identity, topics),
      ...(senderOf && { sender: senderOf(identity.organizationId) }),
    };
  };
}

/** The memory that compiled settings and definitions take, measured: a part that all have, and a multiple of their length as text. */
const SETTINGS_BYTES = 6_000;
const CONTENT_BYTES = 1_900;
const EXPANSION = 3;

interface ContentText {
  readonly settings: string;
  readonly secrets: string;
  readonly definitions: string;
}

/** The database answers equal settings in equal order. */
function textOf(kind: ChannelKind, { settings, definitions }: StoredChannel): ContentText {
  return {
    settings: JSON.stringify(withoutSecrets(kind, settings)),
    secrets: JSON.stringify(kind.secretSettings.map((name) => settings[name])),
    definitions: JSON.stringify(definitions),
  };
}

function withoutSecrets<T extends object>({ secretSettings }: ChannelKind, settings: T): T {
  const shown = { ...settings };
  for (const name of secretSettings) Reflect.deleteProperty(shown, name);
  return shown;
}

const onlySecrets = ({ secretSettings }: ChannelKind, settings: object) =>
  Object.fromEntries(Object.entries(settings).filter(([name]) => secretSettings.includes(name)));

const NO_KEYS: KeySource = {
  get: () => {
    throw new Error("this sender's keys are not fetched");
  },
  renew: () => Promise.reject(new Error("this sender's keys are not fetched")),
};
