import type { ChannelIdentity } from "../../event/channel.ts";
import { luaScript } from "../../lib/lua.ts";
import type { RedisBus } from "../connection/redis.ts";
import { quarantineBudgetKey } from "../keys.ts";

/** Identifies a pause of a channel. Later pauses of the channel have higher numbers. */
export interface PauseRef {
  readonly channel: Pick<ChannelIdentity, "number" | "organizationId">;
  readonly pause: number;
}

/**
 * State of the buffer that holds a channel's deliveries during a pause. While it is `closing`, the last deliveries are drained and new ones
 * are rejected.
 */
export type PauseState = "buffering" | "closing" | "over";

/**
 * Tracks whether the buffer of a channel's pause is empty. The state shares a Redis hash with the quarantine budget, so a pause cannot end
 * while another worker adds a delivery to its buffer. All methods throw UnavailableError.
 */
export type Pauses = ReturnType<typeof createPauses>;

/**
 * Maximum time for which a closing pause buffer rejects deliveries, and a new delivery waits for the pause to end. Draining the last
 * deliveries takes less.
 */
export const CLOSING_MS = 1_000;

const STATES: readonly PauseState[] = ["buffering", "closing", "over"];

export function createPauses({ redis }: { readonly redis: RedisBus }) {
  const runState = luaScript(redis, new URL("./pause-state.lua", import.meta.url));
  const runEnd = luaScript(redis, new URL("./pause-end.lua", import.meta.url));
  return {
    async state({ channel, pause }: PauseRef): Promise<PauseState> {
      const key = quarantineBudgetKey(channel.organizationId);
      const reply = await runState([key], [channel.number, pause]);
      return STATES[Number(reply)] ?? "buffering";
    },
    /**
     * Ends the pause and returns true if its buffer is empty. Otherwise returns false. If `closes` is true and at most `maxLeft` deliveries
     * are left, it also closes the buffer.
     */
    async end(
      { channel, pause }: PauseRef,
      { closes, maxLeft }: { readonly closes: boolean; readonly maxLeft: number },
    ): Promise<boolean> {
      const key = quarantineBudgetKey(channel.organizationId);
      const args = [channel.number, pause, closes ? CLOSING_MS : 0, maxLeft];
      return (await runEnd([key], args)) === 1;
    },
  };
}
