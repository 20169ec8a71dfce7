import { hash } from "node:crypto";
import type { z } from "zod";
import type { StoredChannel } from "../data/channels/stored-channels.ts";
import type { ChannelConfig, ChannelKindName } from "../event/channel.ts";
import { fillPaths } from "../event/definition.ts";
import type { ChannelHandle } from "../event/ingest.ts";
import { DEFAULT_METHODS } from "../event/methods.ts";
import { readWakes } from "../event/wakes.ts";
import { UnavailableError } from "../lib/errors.ts";
import { createInterned, createSharedParts } from "../lib/interned.ts";
import { readStoredConfig } from "../lib/stored-config.ts";
import { isReadableType } from "../normalize/body/bodies.ts";
import { type CompiledDefinitions, compileDefinitions } from "../normalize/compile.ts";
import type { PathCache } from "../normalize/paths/jsonpath.ts";
import type { KindProfile } from "../normalize/profile.ts";
import { createRuleSet, formatSource, type RuleSet } from "../normalize/rule-set.ts";
import { boundWaiting } from "../verify/keys/bounded-waiting.ts";
import type { KeySource } from "../verify/keys/key-source.ts";
import type { RegistrationSignals } from "../verify/preset-registration.ts";
import type { Presets } from "../verify/presets.ts";
import type { RegistrationConfig } from "../verify/registration-config.ts";
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
import { compileRouting, type Routes } from "./route/compile-routing.ts";

/**
 * Earliest times at which the next delivery is recorded: one time for any delivery, and one time for deliveries that were not published.
 */
export interface Sampling {
  nextAtMs: number;
  nextFailedAtMs: number;
}

export interface SharedPart {
  readonly bytes: number;
}

export interface ChannelWakes {
  /** Uids of channels of the same app. */
  readonly uids: readonly string[];
  /** Whether the channel has no event definitions, so that its deliveries are not parsed. */
  readonly publishesNothing: boolean;
}

/** A channel that is ready to receive deliveries. Channel kinds only see the fields of `ChannelHandle`. */
export interface CompiledChannel extends ChannelHandle {
  /** Complete config as parsed by the channel kind, including decrypted secrets. */
  readonly config: ChannelConfig;
  /** Version of the channel's database row. Every write increments it. */
  readonly version: number;
  readonly connectionId: string | null;
  /** The polling channels that each delivery wakes. `undefined` for most channels. */
  readonly wakes?: ChannelWakes;
  /** Deliveries with which the provider reports the state of the channel's registration. `undefined` for most channels. */
  readonly signals?: RegistrationSignals;
  /** The pause whose buffered deliveries must be published before new deliveries. `undefined` if there is no such pause. */
  readonly pause: number | undefined;
  /** When the next deliveries are recorded. `undefined` if the channel does not record deliveries. */
  readonly sampling?: Sampling;
  readonly verification?: { readonly scheme: string; readonly preset: string | null };
  readonly rules: RuleSet;
  readonly sender: CompiledSender;
  readonly shares?: readonly SharedPart[];
  /** How an intake distributes its items to apps. `undefined` for the channels of an app. */
  readonly routes?: Routes;
}

/** The properties of a channel kind that are needed to compile its channels. */
export interface CompilableKind {
  readonly kind: ChannelKindName;
  readonly configSchema: z.ZodType<ChannelConfig>;
  readonly secretFields: readonly string[];
  readonly profile: KindProfile;
  /** Whether senders post to the channel, so that its config says how to verify them. */
  readonly addressed: boolean;
}

export interface CompileDeps extends Omit<SenderDeps, "onShadowed" | "keys"> {
  /** Base URL of the API, with which the CloudEvents `dataschema` starts. */
  readonly baseUrl: string;
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

/**
 * Creates a function that compiles stored channels. A channel that an earlier version accepted may no longer compile. It is then
 * unavailable until someone fixes it, and its senders are asked to retry.
 *
 * Most channels are nearly equal: those of one blueprint differ only in their names, those of one provider only in their secrets. So equal
 * definitions and equal verification settings are compiled once, and are shared across organizations for as long as any channel uses them.
 *
 * @returns a function that throws `UnavailableError` when the channel does not compile
 */
export function createCompileChannel(deps: CompileDeps): (stored: StoredChannel) => CompiledChannel {
  const definitions = createInterned<SharedDefinitions>();
  const senders = createInterned<SharedSender>();
  const shareParts = createSharedParts();

  function compileSharedSender(
    kind: CompilableKind,
    { secrets: _, ...sender }: Sender,
    preset: string | null,
  ): SharedSender {
    const { readAs, answer, verification } = sender;
    const text = JSON.stringify(sender);
    return senders(hashKey(kind.kind, String(preset), text), () => {
      const { acceptsContentType = readAs === undefined ? isReadableType : acceptsAnyType } = kind.profile;
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

  /** Compiles the sender of one channel. Organizations have separate sources of keys, so that none waits for another one's keys. */
  function compileOwnSender(sender: Sender, shared: SharedSender, organizationId: string): CompiledSender {
    const { bare, deps: senderDeps, program } = shared;
    if (bare.fetchesKeys) {
      const keys = boundWaiting(deps.keysOf(organizationId));
      return compileSender(sender, { ...senderDeps, keys }, program);
    }
    return sender.secrets.length === 0 ? bare : compileSender(sender, senderDeps, program);
  }

  function compileSharedDefinitions(
    { kind, profile }: CompilableKind,
    { identity, definitions: stored }: StoredChannel,
    { paths, reading }: Sender,
    config: ChannelConfig,
  ): SharedDefinitions {
    const filled = fillPaths(stored, paths);
    const { dedupe, itemsPath, pathSyntax } = config;
    // The cache key must contain every input of the compilation. Otherwise channels would share wrong definitions.
    const inputs = [filled, reading, itemsPath, pathSyntax, profile.itemOptions?.(config), dedupe.ignore];
    const text = JSON.stringify(inputs);
    return definitions(hashKey(kind, text), () => {
      const result = compileDefinitions({ profile, reading, config, definitions: filled }, deps.pathsOf);
      if (!result.ok) {
        throw new UnavailableError(`channel ${identity.number} has definitions that no longer compile`, {
          cause: new Error(result.error.map(({ path, message }) => `${path}: ${message}`).join("; ")),
        });
      }
      const { config: _, ...compiled } = result.value;
      return { compiled, bytes: DEFINITIONS_BYTES + EXPANSION * text.length };
    });
  }

  return (stored) => {
    const { version, state, pause, topics, schemaVersions, connectionId } = stored;
    const kind = deps.channelKinds.get(stored.identity.kind);
    if (kind === undefined) throw new UnavailableError(`there is no channel kind ${stored.identity.kind}`);
    const identity = { ...stored.identity, kind: kind.kind };
    const { config: parsed, sender, preset } = readConfig(kind, stored, deps.presets);
    const { itemsPath = sender.paths.itemsPath } = parsed;
    const complete = itemsPath === undefined ? parsed : { ...parsed, itemsPath };
    const { whole: shown, ownLength } = shareParts(withoutSecrets(kind, complete));
    const secrets = kind.secretFields.flatMap((name) => stored.config[name] ?? []);
    const config = secrets.length === 0 ? shown : { ...complete, ...shown };
    const sharedSender = compileSharedSender(kind, sender, preset);
    const sharedDefinitions = compileSharedDefinitions(kind, stored, sender, shown);
    const ownSender = compileOwnSender(sender, sharedSender, identity.organizationId);
    const { answer, verification } = sharedSender;
    const uids = readWakes(shown);
    const wakes = uids && { uids, publishesNothing: stored.definitions.length === 0 };
    const acceptsContentType = wakes?.publishesNothing ? acceptsAnyType : sharedSender.acceptsContentType;
    const signals = findSignals(shown, preset, deps.presets);
    const routes = stored.routing && compileRouting(kind.profile, config, stored.routing, deps.pathsOf);
    const ownChars = ownLength + JSON.stringify(secrets).length;
    const ownBytes = CONFIG_BYTES + EXPANSION * ownChars + VERSION_BYTES * schemaVersions.size;
    return {
      answer,
      acceptsContentType,
      verification,
      config,
      limits: config.limits,
      kindConfig: config,
      methods: ownSender.methods,
      sender: ownSender,
      shares: [sharedSender, sharedDefinitions, { bytes: ownBytes }],
      identity,
      version,
      connectionId,
      ...(wakes && { wakes }),
      ...(signals && { signals }),
      ...(routes && { routes }),
      state,
      pause,
      ...(config.deliveryRecords && { sampling: { nextAtMs: 0, nextFailedAtMs: 0 } }),
      rules: createRuleSet({ ...sharedDefinitions.compiled, config: shown }, identity, topics, {
        baseUrl: `${deps.baseUrl}${formatSource(identity)}/schemas`,
        versions: schemaVersions,
      }),
    };
  };
}

const acceptsAnyType = (): boolean => true;

function findSignals(
  config: ChannelConfig,
  preset: string | null,
  presets: Presets,
): RegistrationSignals | undefined {
  if (preset === null || !("registration" in config) || config.registration === undefined) return undefined;
  const { target } = config.registration as RegistrationConfig;
  return presets.get(preset)?.registrations.find((one) => one.target === target)?.signals;
}

/** Estimated memory of a compiled sender, in bytes. `EXPANSION` times the length of its JSON text is added. */
const SENDER_BYTES = 3_000;
const DEFINITIONS_BYTES = 600;
const CONFIG_BYTES = 600;
const VERSION_BYTES = 60;
const EXPANSION = 3;

const hashKey = (...texts: readonly string[]): string => hash("sha256", texts.join("\n"), "base64url");

/** @throws UnavailableError if the config that an earlier version stored cannot be used */
function readConfig(kind: CompilableKind, { identity, config: stored }: StoredChannel, presets: Presets) {
  const unavailable = (problem: string, details: readonly string[]): UnavailableError =>
    new UnavailableError(`channel ${identity.number} ${problem}`, { cause: new Error(details.join("; ")) });
  const read = readStoredConfig(kind.configSchema, stored);
  if (!read.ok) {
    const details = read.error.map(({ path, message }) => `${path}: ${message}`);
    throw unavailable("has settings that are no longer valid", details);
  }
  const { config } = read.value;
  // This config must match the current schema even if it was stored earlier, because it decides whose requests are accepted.
  const senderConfig = senderConfigSchema.safeParse(kind.addressed ? config : {});
  if (!senderConfig.success)
    throw unavailable("has verification settings that are no longer valid", [senderConfig.error.message]);
  const sender = resolveSender(senderConfig.data, presets);
  if (!sender.ok) {
    const details = sender.error.map(({ path, message }) => `${path.join(".")}: ${message}`);
    throw unavailable("uses a sender verification that is no longer supported", details);
  }
  const isRegistered = "registration" in config && config.registration !== undefined;
  return {
    config,
    sender: toOwnSender(kind, isRegistered ? withoutCapture(sender.value) : sender.value),
    preset: senderConfig.data.preset ?? null,
  };
}

/** A registration supplies the secret. Its successor has another one, so the handshake must not compare it with a stored secret. */
const withoutCapture = (sender: Sender): Sender => ({
  ...sender,
  handshakes: sender.handshakes.map(({ captureSecret: _, ...handshake }) => handshake),
});

/** Drops the methods of a preset on a channel whose kind fixes its method. */
const toOwnSender = ({ profile }: CompilableKind, sender: Sender): Sender =>
  profile.takesMethods ? sender : { ...sender, methods: DEFAULT_METHODS };

function withoutSecrets({ secretFields }: CompilableKind, config: ChannelConfig): ChannelConfig {
  const shown = { ...config };
  for (const name of secretFields) Reflect.deleteProperty(shown, name);
  return shown;
}

const NO_KEYS: KeySource = {
  get: () => {
    throw new Error("the verification of this sender fetches no keys");
  },
  renew: () => Promise.reject(new Error("the verification of this sender fetches no keys")),
};
