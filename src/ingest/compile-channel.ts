import { hash } from "node:crypto";
import type { z } from "zod";
import type { StoredChannel } from "../data/channels/stored-channels.ts";
import type { ChannelConfig, ChannelKindName } from "../event/channel.ts";
import { fillPaths } from "../event/definition.ts";
import { UnavailableError } from "../lib/errors.ts";
import { createInterned, createSharedParts } from "../lib/interned.ts";
import { readStoredConfig } from "../lib/stored-config.ts";
import { parseBodyFormat } from "../normalize/body/bodies.ts";
import { type CompiledDefinitions, compileDefinitions, createRuleSet } from "../normalize/compile.ts";
import type { PathCache } from "../normalize/paths/jsonpath.ts";
import type { KindProfile } from "../normalize/profile.ts";
import { boundWaiting } from "../verify/keys/bounded-waiting.ts";
import type { KeySource } from "../verify/keys/key-source.ts";
import type { Presets } from "../verify/presets.ts";
import { resolveSender, type Sender } from "../verify/sender.ts";
import { senderConfigSchema } from "../verify/sender-config.ts";
import type { FailureReason } from "../verify/verifier.ts";
import {
  type CompiledSender,
  compileSender,
  compileSenderProgram,
  type SenderDeps,
  type SenderProgram,
} from "../verify/verify.ts";
import type { CompiledChannel, SharedPart } from "./compiled-channel.ts";

/** The properties of a channel kind that are needed to compile its channels. */
export interface CompilableKind {
  readonly kind: ChannelKindName;
  readonly configSchema: z.ZodType<ChannelConfig>;
  readonly secretFields: readonly string[];
  readonly profile: KindProfile;
}

export interface CompileDeps extends Omit<SenderDeps, "onShadowed" | "keys"> {
  readonly keysOf: (organizationId: string) => KeySource;
  readonly channelKinds: ReadonlyMap<ChannelKindName, CompilableKind>;
  readonly pathsOf: PathCache;
  readonly presets: Presets;
  /** Called when verification fails but the channel accepts the request anyway, because it is in shadow mode. */
  readonly onShadowed: (kind: ChannelKindName, reason: FailureReason) => void;
}

/** Compiled sender verification. Channels share it if their configs differ only in their secrets. */
interface SharedSender extends Pick<CompiledChannel, "answer" | "acceptsContentType">, SharedPart {
  readonly verification: NonNullable<CompiledChannel["verification"]>;
  readonly program: SenderProgram;
  readonly deps: SenderDeps;
  /** Compiled sender verification for channels without secrets. */
  readonly bare: CompiledSender;
}

/** Compiled event definitions. Channels with equal definitions share them, even if the rest of their config differs. */
interface SharedDefinitions extends SharedPart {
  readonly compiled: Omit<CompiledDefinitions, "config">;
}

/** A parsed config. Channels share it if their configs differ only in their secrets. */
interface SharedConfig extends SharedPart {
  readonly config: ChannelConfig;
  /** Config fields that the normalization rules use. They contain no secrets, and a missing `itemsPath` is taken from the preset. */
  readonly rulesConfig: ChannelConfig;
}

interface SharedContent
  extends Pick<
    CompiledChannel,
    | "limits"
    | "kindConfig"
    | "methods"
    | "answer"
    | "acceptsContentType"
    | "config"
    | "shares"
    | "verification"
  > {
  readonly definitions: SharedDefinitions;
  readonly rulesConfig: ChannelConfig;
  readonly sender: CompiledSender;
  /**
   * Compiles the sender verification separately per organization, so that no organization waits for another one's keys. `undefined` if no
   * keys must be fetched.
   */
  readonly createSender: ((organizationId: string) => CompiledSender) | undefined;
}

/**
 * Creates a function that compiles stored channels. A channel that an earlier version accepted may no longer compile. It is then
 * unavailable until someone fixes it, and its senders are asked to retry.
 *
 * Most channels are nearly equal: those of one blueprint differ only in their names, those of one provider only in their secrets. So equal
 * parts are compiled once and shared across organizations for as long as any channel uses them.
 *
 * @returns a function that throws `UnavailableError` when the channel does not compile
 */
export function createCompileChannel(deps: CompileDeps): (stored: StoredChannel) => CompiledChannel {
  const contents = createInterned<SharedContent>();
  const configs = createInterned<SharedConfig>();
  const definitions = createInterned<SharedDefinitions>();
  const senders = createInterned<SharedSender>();
  const parts = createSharedParts();

  function compileContent(kind: CompilableKind, stored: StoredChannel, text: ContentText): SharedContent {
    const { number } = stored.identity;
    const read = readStoredConfig(kind.configSchema, stored.config);
    if (!read.ok) {
      throw new UnavailableError(`channel ${number} has settings that are no longer valid`, {
        cause: new Error(read.error.map(({ path, message }) => `${path}: ${message}`).join("; ")),
      });
    }
    const parsed = read.value.config;
    // This config must match the current schema even if it was stored earlier, because it decides whose requests are accepted.
    const senderConfig = senderConfigSchema.safeParse(parsed);
    if (!senderConfig.success) {
      throw new UnavailableError(`channel ${number} has verification settings that are no longer valid`, {
        cause: senderConfig.error,
      });
    }
    const resolved = resolveSender(senderConfig.data, deps.presets);
    if (!resolved.ok) {
      throw new UnavailableError(`channel ${number} uses a sender verification that is no longer supported`, {
        cause: new Error(
          resolved.error.map(({ path, message }) => `${path.join(".")}: ${message}`).join("; "),
        ),
      });
    }
    const sender = resolved.value;
    const sharedSender = compileSharedSender(kind, sender, senderConfig.data.preset ?? null);
    const { itemsPath } = sender.paths;
    const sharedConfig = configs(hashKey(kind.kind, text.config), () =>
      shareConfig(withoutSecrets(kind, parsed), itemsPath),
    );
    const sharedDefinitions = compileSharedDefinitions(kind, stored, sender, sharedConfig.rulesConfig);
    // Copies only the top level, so that channels still share nested values.
    const own = text.hasSecrets
      ? { ...sharedConfig.config, ...onlySecrets(kind, parsed) }
      : sharedConfig.config;
    const compiled =
      sender.secrets.length === 0
        ? sharedSender.bare
        : compileSender(sender, sharedSender.deps, sharedSender.program);
    const { answer, acceptsContentType, verification } = sharedSender;
    return {
      answer,
      acceptsContentType,
      verification,
      definitions: sharedDefinitions,
      config: text.hasSecrets ? withItemsPath(own, itemsPath) : sharedConfig.rulesConfig,
      rulesConfig: sharedConfig.rulesConfig,
      limits: own.limits,
      kindConfig: own,
      methods: compiled.methods,
      shares: [
        sharedSender,
        sharedConfig,
        sharedDefinitions,
        { bytes: text.hasSecrets ? CONTENT_BYTES + EXPANSION * text.secrets.length : CONTENT_BYTES },
      ],
      sender: compiled,
      createSender: compiled.fetchesKeys ? createSenderFactory(sender, sharedSender) : undefined,
    };
  }

  function shareConfig(shown: ChannelConfig, itemsPath: string | undefined): SharedConfig {
    const { whole, ownLength } = parts(shown);
    const bytes = CONFIG_BYTES + EXPANSION * ownLength;
    return { config: whole, rulesConfig: withItemsPath(whole, itemsPath), bytes };
  }

  function compileSharedSender(
    kind: CompilableKind,
    { secrets: _, ...sender }: Sender,
    preset: string | null,
  ): SharedSender {
    const { readAs, answer, verification } = sender;
    const text = JSON.stringify(sender);
    return senders(hashKey(kind.kind, String(preset), text), () => {
      const { acceptsContentType = (type) => parseBodyFormat(readAs ?? type) !== undefined } = kind.profile;
      const onShadowed: SenderDeps["onShadowed"] = (reason) => deps.onShadowed(kind.kind, reason);
      const senderDeps = { hooksUrl: deps.hooksUrl, keys: NO_KEYS, onShadowed };
      const program = compileSenderProgram(sender);
      return {
        answer,
        acceptsContentType,
        program,
        deps: senderDeps,
        verification: { scheme: String(verification.scheme), preset },
        bare: compileSender({ ...sender, secrets: [] }, senderDeps, program),
        bytes: SENDER_BYTES + EXPANSION * text.length,
      };
    });
  }

  function compileSharedDefinitions(
    { kind, profile }: CompilableKind,
    { identity, definitions: stored }: StoredChannel,
    { forms, paths }: Sender,
    config: ChannelConfig,
  ): SharedDefinitions {
    const filled = fillPaths(stored, paths);
    const { itemsPath, pathSyntax } = config;
    // The cache key must contain every input of the compilation. Otherwise channels would share wrong definitions.
    const text = JSON.stringify([filled, forms, itemsPath, pathSyntax, profile.itemOptions?.(config)]);
    return definitions(hashKey(kind, text), () => {
      const result = compileDefinitions({ profile, forms, config, definitions: filled }, deps.pathsOf);
      if (!result.ok) {
        throw new UnavailableError(`channel ${identity.number} has definitions that no longer compile`, {
          cause: new Error(result.error.map(({ path, message }) => `${path}: ${message}`).join("; ")),
        });
      }
      const { config: _, ...compiled } = result.value;
      return { compiled, bytes: DEFINITIONS_BYTES + EXPANSION * text.length };
    });
  }

  const createSenderFactory =
    (sender: Sender, { deps: senderDeps, program }: SharedSender) =>
    (organizationId: string): CompiledSender =>
      compileSender(sender, { ...senderDeps, keys: boundWaiting(deps.keysOf(organizationId)) }, program);

  return (stored) => {
    const { version, state, pause, topics, connectionId } = stored;
    const kind = deps.channelKinds.get(stored.identity.kind);
    if (kind === undefined) throw new UnavailableError(`there is no channel kind ${stored.identity.kind}`);
    const text = serializeContent(kind, stored);
    const contentKey = hashKey(kind.kind, text.config, text.secrets, text.definitions);
    const {
      definitions: { compiled },
      rulesConfig,
      createSender,
      ...content
    } = contents(contentKey, () => compileContent(kind, stored, text));
    const identity = { ...stored.identity, kind: kind.kind };
    return {
      ...content,
      identity,
      version,
      connectionId,
      state,
      pause,
      ...(content.config.deliveryRecords && { sampling: { nextAtMs: 0, nextFailedAtMs: 0 } }),
      rules: createRuleSet({ ...compiled, config: rulesConfig }, identity, topics),
      ...(createSender && { sender: createSender(identity.organizationId) }),
    };
  };
}

/** Estimated memory of a compiled sender, in bytes. `EXPANSION` times the length of its JSON text is added. */
const SENDER_BYTES = 3_000;
const DEFINITIONS_BYTES = 600;
const CONFIG_BYTES = 250;
const CONTENT_BYTES = 600;
const EXPANSION = 3;

interface ContentText {
  readonly config: string;
  readonly secrets: string;
  readonly hasSecrets: boolean;
  readonly definitions: string;
}

const hashKey = (...texts: readonly string[]): string => hash("sha256", texts.join("\n"), "base64url");

const withItemsPath = (config: ChannelConfig, itemsPath: string | undefined): ChannelConfig =>
  itemsPath === undefined || config.itemsPath !== undefined ? config : { ...config, itemsPath };

/**
 * Converts a config and definitions to text for comparison. Equal `jsonb` values give equal text, because PostgreSQL returns their keys in
 * the same order.
 */
function serializeContent(kind: CompilableKind, { config, definitions }: StoredChannel): ContentText {
  return {
    config: JSON.stringify(withoutSecrets(kind, config)),
    secrets: JSON.stringify(kind.secretFields.map((name) => config[name])),
    hasSecrets: kind.secretFields.some((name) => config[name] !== undefined),
    definitions: JSON.stringify(definitions),
  };
}

function withoutSecrets<T extends object>({ secretFields }: CompilableKind, config: T): T {
  const shown = { ...config };
  for (const name of secretFields) Reflect.deleteProperty(shown, name);
  return shown;
}

const onlySecrets = ({ secretFields }: CompilableKind, config: object) =>
  Object.fromEntries(Object.entries(config).filter(([name]) => secretFields.includes(name)));

const NO_KEYS: KeySource = {
  get: () => {
    throw new Error("the verification of this sender fetches no keys");
  },
  renew: () => Promise.reject(new Error("the verification of this sender fetches no keys")),
};
