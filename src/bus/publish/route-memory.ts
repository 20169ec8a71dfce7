import { createHash } from "node:crypto";
import type { RedisBus } from "../connection/redis.ts";
import { routedBytesKey } from "../keys.ts";

/** Remembers which route keys the signed bytes of an intake's deliveries had. */
export const createRouteMemory =
  ({ redis }: { readonly redis: RedisBus }) =>
  /**
   * Returns true if the same signed bytes arrived before with other route keys. A retry with the same keys is no replay.
   *
   * @throws UnavailableError
   */
  async (
    channelNumber: number,
    signedBytes: string,
    keys: readonly string[],
    windowMs: number,
  ): Promise<boolean> => {
    const digest = createHash("sha256").update(JSON.stringify(keys)).digest("base64url");
    const key = routedBytesKey(channelNumber, signedBytes);
    const known = await redis.call("set", [key, digest, "PX", windowMs, "NX", "GET"]);
    return known !== null && known !== digest;
  };
