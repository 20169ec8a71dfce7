import type { ChannelIdentity } from "../event/channel.ts";
import { quarantineBudgetKey } from "./keys.ts";
import type { RedisBus } from "./redis.ts";
import { loadScript, runScript } from "./scripts.ts";

/** Which pause of which channel; a later one has the greater number. */
export interface PauseRef {
  readonly channel: Pick<ChannelIdentity, "number" | "organizationId">;
  readonly pause: number;
}

/**
 * Whether all that a pause has kept back in quarantine is through. It is said beside the quarantine itself, so that no worker
 * can be told that nothing is left while another's delivery is being kept.
 */
export interface Pauses {
  /** @throws UnavailableError */
  isOver(ref: PauseRef): Promise<boolean>;
  /** Ends the pause if nothing is left of it; true where nothing was. @throws UnavailableError */
  end(ref: PauseRef): Promise<boolean>;
}

export function createPauses({ redis }: { readonly redis: RedisBus }): Pauses {
  const endScript = loadScript("pause-end");
  return {
    async isOver({ channel, pause }) {
      const over = await redis.call("hget", [
        quarantineBudgetKey(channel.organizationId),
        `${channel.number}:over`,
      ]);
      return Number(over ?? 0) >= pause;
    },
    async end({ channel, pause }) {
      const key = quarantineBudgetKey(channel.organizationId);
      return (await runScript(redis, endScript, [key], [channel.number, pause])) === 1;
    },
  };
}
