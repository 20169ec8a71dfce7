import type { ChannelIdentity } from "../../event/channel.ts";
import { luaScript } from "../../lib/lua.ts";
import type { RedisBus } from "../connection/redis.ts";
import { quarantineBudgetKey } from "../keys.ts";

/** Identifies one pause of a channel. Each later pause of the channel has a higher number. */
export interface PauseRef {
  readonly channel: Pick<ChannelIdentity, "number" | "organizationId">;
  readonly pause: number;
}

/**
 * State of the buffer for deliveries that arrive during a pause. While it is `closing`, new deliveries are rejected and the last
 * ones are processed.
 */
export type PauseState = "buffering" | "closing" | "over";

/**
 * Tracks whether a paused channel has buffered deliveries. A pause cannot end while another worker adds a delivery to the buffer.
 *
 * All methods throw UnavailableError.
 */
export type Pauses = ReturnType<typeof createPauses>;

/** Maximum time in ms for processing the last buffered deliveries of a pause, which takes less. Meanwhile, new deliveries wait or
 * are rejected. */
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
     * Ends the pause and returns true if its buffer is empty, otherwise returns false. With `closes`, a buffer with at most `maxLeft`
     * deliveries starts rejecting new ones.
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
