import { expect, it } from "vitest";
import { limitedIngest } from "../../../src/channels/push/rate-limit.ts";
import type { Ingest } from "../../../src/event/ingest.ts";
import type { RawRequest } from "../../../src/event/received.ts";
import { pushChannel } from "./push-support.ts";

it("the items of a delivery count towards its organization's rate, and its caller is told their number", async () => {
  const told: (readonly [who: string, items: number])[] = [];
  const parsed: Ingest = (channel, _, { admit, onItems }) => {
    admit?.(channel);
    onItems?.(channel, 3);
    return { kind: "tooManyItems", limit: 2 };
  };
  const ingest = limitedIngest(parsed, {
    checkVerified: () => told.push(["verified", 0]),
    countItems: (_, items) => told.push(["counted", items]),
  });
  const { signal } = new AbortController();
  const [channel, request] = [pushChannel(1_000), {} as RawRequest];
  await ingest(channel, request, { signal });
  await ingest(channel, request, { signal, onItems: (_, items) => told.push(["asked", items]) });
  expect(told).toEqual([
    ["verified", 0],
    ["counted", 3],
    ["verified", 0],
    ["counted", 3],
    ["asked", 3],
  ]);
});
