import type { ChannelIdentity } from "../../event/channel.ts";
import { luaScript } from "../../lib/lua.ts";
import type { RedisBus } from "../connection/redis.ts";
import { quarantineBudgetKey } from "../keys.ts";

/** Which pause of which channel; a later one has the greater number. */
export interface PauseRef {
  readonly channel: Pick<ChannelIdentity, "number" | "organizationId">;
  readonly pause: number;
}

/** `closes`: little is left; it is over in a moment. */
export type PauseState = "keeps" | "closes" | "over";

/**
 * Whether all that a pause has buffered in quarantine is through. It is said beside the quarantine itself, so that no worker
 * can be told that nothing is left while another's delivery is being kept. Each method throws UnavailableError.
 */
export type Pauses = ReturnType<typeof createPauses>;

/** Longer than the last deliveries take to come through; a delivery waits for the end no longer. */
export const CLOSES_MS = 1_000;

const STATES: readonly PauseState[] = ["keeps", "closes", "over"];

export function createPauses({ redis }: { readonly redis: RedisBus }) {
  const runState = luaScript(redis, new URL("./pause-state.lua", import.meta.url));
  const runEnd = luaScript(redis, new URL("./pause-end.lua", import.meta.url));
  return {
    async state({ channel, pause }: PauseRef): Promise<PauseState> {
      const key = quarantineBudgetKey(channel.organizationId);
      const reply = await runState([key], [channel.number, pause]);
      return STATES[Number(reply)] ?? "keeps";
    },
    /** Ends the pause if nothing is left of it; true where nothing was. Else, with `closes`, says so where at most `little` is left. */
    async end(
      { channel, pause }: PauseRef,
      { closes, little }: { readonly closes: boolean; readonly little: number },
    ): Promise<boolean> {
      const key = quarantineBudgetKey(channel.organizationId);
      const args = [channel.number, pause, closes ? CLOSES_MS : 0, little];
      return (await runEnd([key], args)) === 1;
    },
  };
}
