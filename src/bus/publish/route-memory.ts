import { createHash } from "node:crypto";
import type { RedisBus } from "../connection/redis.ts";
import { routedBytesKey } from "../keys.ts";

export type RouteMemory = ReturnType<typeof createRouteMemory>;

/** Remembers which route keys the signed bytes of an intake's deliveries had. */
export function createRouteMemory({ redis }: { readonly redis: RedisBus }) {
  return {
    /**
     * Returns true if the same signed bytes arrived before with other route keys. A retry with the same keys is no replay.
     *
     * @throws UnavailableError
     */
    async isReplay(
      channelNumber: number,
      signedBytes: string,
      keys: readonly string[],
      windowMs: number,
    ): Promise<boolean> {
      const key = routedBytesKey(channelNumber, signedBytes);
      const known = await redis.call("set", [key, digestOf(keys), "PX", windowMs, "NX", "GET"]);
      return known !== null && known !== digestOf(keys);
    },
    /** Returns what `isReplay` would, without remembering the signed bytes. @throws UnavailableError */
    async wouldReplay(channelNumber: number, signedBytes: string, keys: readonly string[]): Promise<boolean> {
      const known = await redis.call("get", [routedBytesKey(channelNumber, signedBytes)]);
      return known !== null && known !== digestOf(keys);
    },
  };
}

const digestOf = (keys: readonly string[]): string =>
  createHash("sha256").update(JSON.stringify(keys)).digest("base64url");
