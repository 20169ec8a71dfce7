import type { ChannelKind, ReadInWorker } from "../../src/channels/kind.ts";
import { ok } from "../../src/lib/result.ts";

/** Reads what would go to another thread in this one, copied as it is on the way there and back. */
export const readHere =
  ({ readLarge }: Pick<ChannelKind, "readLarge">): ReadInWorker =>
  async (request) => {
    if (readLarge === undefined) throw new Error("the kind reads nothing elsewhere");
    return ok(structuredClone(readLarge(structuredClone(request))));
  };
