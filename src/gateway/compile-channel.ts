import type { ChannelKinds } from "../channels/kind.ts";
import { readStoredSettings } from "../channels/stored-settings.ts";
import type { LiveChannel as StoredChannel } from "../data/channels/live-channels.ts";
import type { ChannelKindName } from "../event/channel.ts";
import { fillPaths } from "../event/definition.ts";
import type { LiveChannel } from "../ingest/live-channel.ts";
import { UnavailableError } from "../lib/errors.ts";
import { bodyFormatOf } from "../normalize/body/bodies.ts";
import { compileRules } from "../normalize/compile.ts";
import type { PathCache } from "../normalize/paths/jsonpath.ts";
import { boundWaiting } from "../verify/keys/bounded-waiting.ts";
import type { Presets } from "../verify/presets.ts";
import { resolveSender } from "../verify/sender.ts";
import { senderConfigSchema } from "../verify/sender-settings.ts";
import type { RefusalReason } from "../verify/verifier.ts";
import { compileSender, type SenderDeps } from "../verify/verify.ts";

export interface CompileDeps extends Omit<SenderDeps, "onShadowed" | "keys"> {
  readonly keysOf: (organizationId: string) => SenderDeps["keys"];
  readonly channelKinds: ChannelKinds;
  readonly pathsOf: PathCache;
  readonly presets: Presets;
  /** Told of each request that is accepted only because its channel tries its settings out. */
  readonly onShadowed: (kind: ChannelKindName, reason: RefusalReason) => void;
}

/**
 * Makes a stored channel ready to receive. What is stored did compile when it was written; where it no longer does, the
 * channel is out of order until that is mended, and its senders are told to try again.
 */
export function compileChannel(deps: CompileDeps, stored: StoredChannel): LiveChannel {
  const { identity, version, state, pause, settings, definitions, topics, connectionId } = stored;
  const kind = deps.channelKinds.get(identity.kind);
  if (kind === undefined) throw new UnavailableError(`there is no channel kind ${identity.kind}`);
  const read = readStoredSettings(kind.settings, settings);
  if (!read.ok) {
    throw new UnavailableError(`channel ${identity.number} has settings that no longer fit`, {
      cause: new Error(read.error.map(({ path, message }) => `${path}: ${message}`).join("; ")),
    });
  }
  const parsed = read.value.settings;
  // What decides who may send is held to the schema of today.
  const senderConfig = senderConfigSchema.safeParse(parsed);
  if (!senderConfig.success) {
    throw new UnavailableError(`channel ${identity.number} has verification that no longer fits`, {
      cause: senderConfig.error,
    });
  }
  const sender = resolveSender(senderConfig.data, deps.presets);
  if (!sender.ok) {
    throw new UnavailableError(`channel ${identity.number} has a sender that can no longer be verified`, {
      cause: new Error(sender.error.map(({ path, message }) => `${path.join(".")}: ${message}`).join("; ")),
    });
  }
  const { paths } = sender.value;
  const config = { ...parsed, itemsPath: parsed.itemsPath ?? paths.itemsPath };
  const { profile } = kind;
  const rules = compileRules(
    {
      channel: identity,
      profile,
      config,
      definitions: fillPaths(definitions, paths),
      topics,
      forms: sender.value.forms,
    },
    deps.pathsOf,
  );
  if (!rules.ok) {
    throw new UnavailableError(`channel ${identity.number} has definitions that no longer compile`, {
      cause: new Error(rules.error.map(({ path, message }) => `${path}: ${message}`).join("; ")),
    });
  }
  const { readAs, answer } = sender.value;
  const compiled = compileSender(sender.value, {
    ...deps,
    keys: boundWaiting(deps.keysOf(identity.organizationId)),
    onShadowed: (reason) => deps.onShadowed(identity.kind, reason),
  });
  return {
    identity,
    version,
    connectionId,
    state,
    pause,
    limits: config.limits,
    settings: parsed,
    methods: compiled.methods,
    answer,
    acceptsContentType:
      profile.acceptsContentType ?? ((contentType) => bodyFormatOf(readAs ?? contentType) !== undefined),
    config,
    ...(config.deliveryRecords && { sampling: { nextAtMs: 0, nextPoorAtMs: 0 } }),
    verification: {
      scheme: String(sender.value.verification.scheme),
      preset: senderConfig.data.preset ?? null,
    },
    rules: rules.value,
    sender: compiled,
  };
}
