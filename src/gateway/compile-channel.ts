import type { ChannelKind } from "../channels/kind.ts";
import type { LiveChannel as StoredChannel } from "../data/live-channels.ts";
import type { ChannelKindName } from "../event/channel.ts";
import type { LiveChannel } from "../ingest/live-channel.ts";
import { UnavailableError } from "../lib/errors.ts";
import { bodyFormatOf } from "../normalize/bodies.ts";
import { compileRules } from "../normalize/compile.ts";
import { verificationConfigSchema } from "../verify/schemes.ts";
import { compileVerification } from "../verify/verify.ts";

/**
 * Makes a stored channel ready to receive. What is stored did compile when it was written; where it no longer does, the
 * channel is out of order until that is mended, and its senders are told to try again.
 */
export function compileChannel(
  kinds: ReadonlyMap<ChannelKindName, ChannelKind>,
  stored: StoredChannel,
): LiveChannel {
  const { identity, version, state, pause, settings, definitions, connectionId } = stored;
  const kind = kinds.get(identity.kind);
  if (kind === undefined) throw new UnavailableError(`there is no channel kind ${identity.kind}`);
  // Again through the schema: a setting that is younger than the row gets its default.
  const config = kind.settings.safeParse(settings);
  if (!config.success) {
    throw new UnavailableError(`channel ${identity.number} has settings that no longer fit`, {
      cause: config.error,
    });
  }
  const rules = compileRules({ channel: identity, config: config.data, definitions });
  if (!rules.ok) {
    throw new UnavailableError(`channel ${identity.number} has definitions that no longer compile`, {
      cause: new Error(rules.error.map(({ path, message }) => `${path}: ${message}`).join("; ")),
    });
  }
  return {
    identity,
    version,
    connectionId,
    state,
    pause,
    limits: config.data.limits,
    settings: config.data,
    acceptsContentType: rules.value.profile.acceptsContentType ?? hasBodyFormat,
    config: config.data,
    rules: rules.value,
    verify: compileVerification(verificationConfigSchema.parse(config.data)),
  };
}

const hasBodyFormat = (contentType: string | undefined): boolean => bodyFormatOf(contentType) !== undefined;
