import type { PublishPolicy } from "../bus/publish/publish-batch.ts";
import type { ChannelConfig } from "../event/channel.ts";
import { getConflictRule } from "../event/dedupe.ts";
import type { ChannelHandle } from "../event/ingest.ts";
import type { RuleSet } from "../normalize/compile.ts";
import type { CompiledSender } from "../verify/verify.ts";

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

/** A channel that is ready to receive deliveries. Channel kinds only see the fields of `ChannelHandle`. */
export interface CompiledChannel extends ChannelHandle {
  /** Complete config as parsed by the channel kind, including decrypted secrets. */
  readonly config: ChannelConfig;
  /** Version of the channel's database row. Every write increments it. */
  readonly version: number;
  readonly connectionId: string | null;
  /** The pause whose buffered deliveries must be published before new deliveries. `undefined` if there is no such pause. */
  readonly pause: number | undefined;
  /** When the next deliveries are recorded. `undefined` if the channel does not record deliveries. */
  readonly sampling?: Sampling;
  readonly verification?: { readonly scheme: string; readonly preset: string | null };
  readonly rules: RuleSet;
  readonly sender: CompiledSender;
  readonly shares?: readonly SharedPart[];
}

export function toPublishPolicy({ config }: CompiledChannel): PublishPolicy {
  const { dedupe, retention } = config;
  return {
    dedupeWindowMs: dedupe.windowSeconds * 1000,
    conflict: getConflictRule(dedupe).conflict,
    maxEntries: retention.maxEntries,
    maxBytes: retention.maxBytes,
  };
}
