import type { ChannelKind, ReadInWorker } from "../../src/channels/kind.ts";
import { ok } from "../../src/lib/result.ts";

/** Reads large bodies in this thread instead of a worker, and copies them as a transfer between threads would. */
export const readHere =
  ({ readLarge }: Pick<ChannelKind, "readLarge">): ReadInWorker =>
  async (request) => {
    if (readLarge === undefined) throw new Error("the kind has no readLarge");
    return ok(structuredClone(readLarge(structuredClone(request))));
  };
