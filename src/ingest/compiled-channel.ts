import type { PublishPolicy } from "../bus/publish/publish.ts";
import type { ChannelConfig } from "../event/channel.ts";
import { getConflictRule } from "../event/dedupe.ts";
import type { ChannelHandle } from "../event/ingest.ts";
import type { RuleSet } from "../normalize/compile.ts";
import type { CompiledSender } from "../verify/verify.ts";

/** Earliest times of the next delivery records: one time for any delivery, and one for deliveries that were not published. */
export interface Sampling {
  nextAtMs: number;
  nextFailedAtMs: number;
}

export interface SharedPart {
  readonly bytes: number;
}

/** A channel compiled for ingestion. Channel kinds see only the `ChannelHandle`; the other fields are for `ingest`. */
export interface CompiledChannel extends ChannelHandle {
  /** The complete config as parsed by the channel kind, with decrypted secrets. */
  readonly config: ChannelConfig;
  /** Version of the database row, increased by each write. */
  readonly version: number;
  readonly connectionId: string | null;
  /**
   * The pause whose buffered deliveries are not all published yet. New deliveries wait behind them. `undefined` if there is no such pause.
   */
  readonly pause: number | undefined;
  /** `undefined` if the channel does not record deliveries. */
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
