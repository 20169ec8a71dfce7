import type { PublishPolicy } from "../bus/publish/publish.ts";
import type { CommonSettings } from "../event/channel.ts";
import type { ChannelHandle } from "../event/ingest.ts";
import type { RuleSet } from "../normalize/compile.ts";
import type { CompiledSender } from "../verify/verify.ts";

/** Earliest times of the next delivery records: one for any delivery, one for a delivery that was not published. */
export interface Sampling {
  nextAtMs: number;
  nextFailedAtMs: number;
}

/** A compiled part that several channels share, with its memory size. */
export interface SharedPart {
  readonly bytes: number;
}

/** An active channel in compiled form. It extends the handle that channel kinds see by everything that `ingest` needs. */
export interface CompiledChannel extends ChannelHandle {
  /** The complete settings as parsed by the kind's schema, with decrypted secrets. */
  readonly config: CommonSettings;
  /** Version of the database row. Each write increases it. */
  readonly version: number;
  readonly connectionId: string | null;
  /** The pause whose buffered deliveries are not yet published. New deliveries are queued behind them. `undefined` without such a pause. */
  readonly pause: number | undefined;
  /** When to record the next delivery. Missing if the channel records no deliveries. */
  readonly sampling?: Sampling;
  /** The verification scheme and preset, as shown in delivery records. */
  readonly verification?: { readonly scheme: string; readonly preset: string | null };
  readonly rules: RuleSet;
  readonly sender: CompiledSender;
  /** The parts that the channel shares with other channels of equal content. */
  readonly shares?: readonly SharedPart[];
}

/** Converts the channel's settings to a publish policy. */
export function toPublishPolicy({ config }: CompiledChannel): PublishPolicy {
  const { dedupe, retention } = config;
  return {
    dedupeWindowMs: dedupe.windowSeconds * 1000,
    onConflict: dedupe.onConflict === "duplicate" ? "duplicate" : "report",
    maxEntries: retention.maxEntries,
    maxBytes: retention.maxBytes,
  };
}
