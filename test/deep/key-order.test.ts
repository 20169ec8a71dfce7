import { describe, expect, it } from "vitest";
import { opened } from "../support/opened.ts";
import { openKillSite } from "./handler-kills.ts";
import { killGateways, killReaders } from "./key-order.ts";

const site = opened(openKillSite);

describe("four workers of which one after the other is killed", () => {
  it("handle the events of each key in order, and lose none, while some events become dead letters", async () => {
    const { attempts, ...result } = await killReaders({ kills: 6, events: 400 });
    expect(result).toEqual({ events: 2_400, kills: 6, outOfOrder: [], lost: [] });
    expect(attempts).toBeGreaterThan(2_400);
  });

  it.each([
    ["one by one", {}],
    ["in batches", { batch: { maxEvents: 20, maxWaitMs: 100 } }],
  ])("send the events of each key to a handler in order, %s, and lose none, while it rejects some events", async (way, batch) => {
    const settings = { concurrency: 8, ordered: "key", ...batch };
    const story = { kills: 3, events: 48, path: `/keys/${way.replaceAll(" ", "-")}`, settings };
    const { attempts, ...result } = await killGateways(site, story);
    expect(result).toEqual({ events: 288, kills: 3, outOfOrder: [], lost: [] });
    expect(attempts).toBeGreaterThan(288);
  });
});
