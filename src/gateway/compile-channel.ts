import { hash } from "node:crypto";
import type { ChannelKind, ChannelKinds } from "../channels/kind.ts";
import { readStoredSettings } from "../channels/stored-settings.ts";
import type { LiveChannel as StoredChannel } from "../data/channels/live-channels.ts";
import type { ChannelKindName } from "../event/channel.ts";
import { fillPaths } from "../event/definition.ts";
import type { LiveChannel } from "../ingest/live-channel.ts";
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
import { type CompiledSender, compileSender, type SenderDeps } from "../verify/verify.ts";

export interface CompileDeps extends Omit<SenderDeps, "onShadowed" | "keys"> {
  readonly keysOf: (organizationId: string) => KeySource;
  readonly channelKinds: ChannelKinds;
  readonly pathsOf: PathCache;
  readonly presets: Presets;
  /** Told of each request that is accepted only because its channel tries its settings out. */
  readonly onShadowed: (kind: ChannelKindName, reason: RefusalReason) => void;
}

/** Definitions that channels share which have the same settings but for their secrets. */
interface SharedDefinitions {
  readonly compiled: CompiledDefinitions;
  readonly bytes: number;
}

/** All that channels share which have the same settings and definitions. */
interface SharedContent
  extends Pick<
    LiveChannel,
    "limits" | "settings" | "methods" | "answer" | "acceptsContentType" | "config" | "verification" | "shares"
  > {
  readonly definitions: CompiledDefinitions;
  readonly senderOf: (organizationId: string) => CompiledSender;
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
  const definitions = createInterned<SharedDefinitions>();

  function compileContent(
    kind: ChannelKind,
    stored: StoredChannel,
    text: ContentText,
    definitionsKey: string,
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
    const config = { ...parsed, itemsPath: parsed.itemsPath ?? sender.paths.itemsPath };
    const shared = definitions(definitionsKey, () => ({
      compiled: compileOf(kind, stored, config, sender),
      bytes: DEFINITIONS_BYTES + EXPANSION * text.definitions.length,
    }));
    const own = { bytes: CONTENT_BYTES + EXPANSION * (text.settings.length + text.secrets.length) };
    const { senderOf, methods } = sendersOf(kind.kind, sender);
    return {
      limits: config.limits,
      settings: parsed,
      methods,
      answer: sender.answer,
      acceptsContentType:
        kind.profile.acceptsContentType ??
        ((contentType) => bodyFormatOf(sender.readAs ?? contentType) !== undefined),
      config,
      verification: {
        scheme: String(sender.verification.scheme),
        preset: senderConfig.data.preset ?? null,
      },
      shares: [own, shared],
      definitions: shared.compiled,
      senderOf,
    };
  }

  function compileOf(
    kind: ChannelKind,
    { identity, definitions }: StoredChannel,
    config: LiveChannel["config"],
    { paths, forms }: Sender,
  ): CompiledDefinitions {
    const { profile } = kind;
    // Shared with channels that have other secrets.
    const shown = withoutSecrets(kind, config);
    const compiled = compileDefinitions(
      { profile, config: shown, definitions: fillPaths(definitions, paths), forms },
      deps.pathsOf,
    );
    if (compiled.ok) return compiled.value;
    throw new UnavailableError(`channel ${identity.number} has definitions that no longer compile`, {
      cause: new Error(compiled.error.map(({ path, message }) => `${path}: ${message}`).join("; ")),
    });
  }

  /** One for all channels, unless it fetches keys: for these each organization, and each channel, waits for itself. */
  function sendersOf(kind: ChannelKindName, sender: Sender) {
    const compile = (keys: KeySource): CompiledSender =>
      compileSender(sender, {
        ...{ hooksUrl: deps.hooksUrl, keys },
        onShadowed: (reason) => deps.onShadowed(kind, reason),
      });
    const one = compile(NO_KEYS);
    const senderOf = one.fetchesKeys
      ? (organizationId: string) => compile(boundWaiting(deps.keysOf(organizationId)))
      : () => one;
    return { senderOf, methods: one.methods };
  }

  return (stored) => {
    const { version, state, pause, topics, connectionId } = stored;
    const kind = deps.channelKinds.get(stored.identity.kind);
    if (kind === undefined) throw new UnavailableError(`there is no channel kind ${stored.identity.kind}`);
    const text = textOf(kind, stored);
    const definitionsKey = hash("sha256", `${kind.kind}\n${text.settings}\n${text.definitions}`, "base64url");
    const contentKey = hash("sha256", `${definitionsKey}\n${text.secrets}`, "base64url");
    const { definitions, senderOf, ...content } = contents(contentKey, () =>
      compileContent(kind, stored, text, definitionsKey),
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
      sender: senderOf(identity.organizationId),
    };
  };
}

/** What a channel's compiled content takes in memory, measured: a part that each has, and a multiple of its length as text. */
const CONTENT_BYTES = 6_000;
const DEFINITIONS_BYTES = 2_000;
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

const NO_KEYS: KeySource = {
  get: () => {
    throw new Error("this sender's keys are not fetched");
  },
  renew: () => Promise.reject(new Error("this sender's keys are not fetched")),
};
