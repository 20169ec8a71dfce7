import type { PublishPolicy } from "../bus/publish/publish.ts";
import type { CommonSettings } from "../event/channel.ts";
import type { ChannelHandle } from "../event/ingest.ts";
import type { RuleSet } from "../normalize/compile.ts";
import type { CompiledSender } from "../verify/verify.ts";

/** When a channel's next delivery is kept: one of any end, and one that was not simply published. */
export interface Sampling {
  nextAtMs: number;
  nextFailedAtMs: number;
}

/** Something that channels share, compiled, with the memory that it takes. */
export interface SharedPart {
  readonly bytes: number;
}

/** A channel in force: what a kind sees of it, and all that `ingest` needs, compiled. */
export interface CompiledChannel extends ChannelHandle {
  /** As its kind's schema gave it: whole, with the opened secrets. */
  readonly config: CommonSettings;
  /** Of the row: another one after each write. */
  readonly version: number;
  readonly connectionId: string | null;
  /** The pause whose deliveries are not all through: what comes now stands behind them. */
  readonly pause: number | undefined;
  /** When its next delivery is kept as a record; absent: none is. */
  readonly sampling?: Sampling;
  /** How its senders are known, as records of deliveries tell it. */
  readonly verification?: { readonly scheme: string; readonly preset: string | null };
  readonly rules: RuleSet;
  readonly sender: CompiledSender;
  /** What of it other channels may share: those of equal content do. */
  readonly shares?: readonly SharedPart[];
}

/** The channel's settings for a write. */
export function toPublishPolicy({ config }: CompiledChannel): PublishPolicy {
  const { dedupe, retention } = config;
  return {
    dedupeWindowMs: dedupe.windowSeconds * 1000,
    onConflict: dedupe.onConflict === "duplicate" ? "duplicate" : "report",
    maxEntries: retention.maxEntries,
    maxBytes: retention.maxBytes,
  };
}
