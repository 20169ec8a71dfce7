import { expect, it } from "vitest";
import { limitedIngest } from "../../../src/channels/push/rate-limit.ts";
import type { Ingest } from "../../../src/event/ingest.ts";
import type { RawRequest } from "../../../src/event/received.ts";
import { pushChannel } from "./push-support.ts";

it("counts the items of a delivery toward its organization's rate limit, and reports their number to the caller", async () => {
  const calls: (readonly [who: string, items: number])[] = [];
  const parsed: Ingest = (channel, _, { admit, onItems }) => {
    admit?.(channel);
    onItems?.(channel, 3);
    return { kind: "tooManyItems", limit: 2 };
  };
  const ingest = limitedIngest(parsed, {
    checkVerified: () => calls.push(["verified", 0]),
    countItems: (_, items) => calls.push(["counted", items]),
  });
  const { signal } = new AbortController();
  const [channel, request] = [pushChannel(1_000), {} as RawRequest];
  await ingest(channel, request, { signal });
  await ingest(channel, request, { signal, onItems: (_, items) => calls.push(["asked", items]) });
  expect(calls).toEqual([
    ["verified", 0],
    ["counted", 3],
    ["verified", 0],
    ["counted", 3],
    ["asked", 3],
  ]);
});
