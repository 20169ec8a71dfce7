import type { PublishPolicy } from "../bus/publish/publish.ts";
import type { CommonSettings } from "../event/channel.ts";
import type { ChannelHandle } from "../event/ingest.ts";
import type { RuleSet } from "../normalize/compile.ts";
import type { CompiledSender } from "../verify/verify.ts";

/** Earliest times of the next two kinds of delivery record: one of any delivery, and one of a delivery that was not published. */
export interface Sampling {
  nextAtMs: number;
  nextFailedAtMs: number;
}

/** A compiled part that several channels may share, and its memory size in bytes. */
export interface SharedPart {
  readonly bytes: number;
}

/** An active channel in compiled form. Channel kinds only see the `ChannelHandle`. `ingest` also needs the other fields. */
export interface CompiledChannel extends ChannelHandle {
  /** The complete settings with decrypted secrets, as the kind's schema parsed them. */
  readonly config: CommonSettings;
  /** Version of the database row. Each write increases it. */
  readonly version: number;
  readonly connectionId: string | null;
  /**
   * The last pause, if its buffered deliveries are not published yet. New deliveries wait behind those. `undefined` if there is no such
   * pause.
   */
  readonly pause: number | undefined;
  /** Times of the next delivery records. Missing if the channel records no deliveries. */
  readonly sampling?: Sampling;
  /** The verification scheme and preset, as shown in delivery records. */
  readonly verification?: { readonly scheme: string; readonly preset: string | null };
  readonly rules: RuleSet;
  readonly sender: CompiledSender;
  /** The compiled parts that the channel shares with channels of equal content. */
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
