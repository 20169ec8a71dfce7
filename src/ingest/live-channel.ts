import type { CommonSettings } from "../event/channel.ts";
import type { ChannelHandle } from "../event/ingest.ts";
import type { RuleSet } from "../normalize/compile.ts";
import type { VerifyDelivery } from "../verify/verify.ts";

/** A channel in force: what a kind sees of it, and all that `ingest` needs, compiled. */
export interface LiveChannel extends ChannelHandle {
  readonly config: CommonSettings;
  readonly rules: RuleSet;
  readonly verify: VerifyDelivery;
}
